"""Predictions of a deployed model for image files; a file that cannot be read stops no other."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from d2cp.backbone.load import ATTENTION, quiet
from d2cp.core.typed_json import read_typed
from d2cp.data.images import UnreadableError, decode, to_square
from d2cp.data.pixels import centre_view, standardised
from d2cp.errors import RunError
from d2cp.export.hugging_face import D2CPForImageClassification
from d2cp.export.inputs import read_file

LARGEST = 4096  # pixels a side that a model may ask for


class ConfigFile(TypedDict):
    """What `d2cp export` writes into config.json, of which nothing may be absent: a default in its
    place would answer, and otherwise."""

    backbone: dict[str, Any]
    image_size: int
    resize: int
    centre_crop: int | None
    prompt_length: int
    adapter_hidden: NotRequired[int]  # not in exports of prompts by version 0.1
    head_bias: bool
    label2id: NotRequired[dict[str, int] | None]
    shortcut_labels: list[str] | None


@dataclass(frozen=True)
class Deployed:
    """A folder written by `d2cp export`, loaded."""

    model: D2CPForImageClassification
    mean: tuple[float, ...]
    std: tuple[float, ...]

    @classmethod
    def load(cls, folder: Path) -> Deployed:
        _require_export(folder)
        try:
            processor = _read(folder / "preprocessor_config.json")
            mean, std = _triple(processor["image_mean"]), _triple(processor["image_std"])
            with quiet():
                model = D2CPForImageClassification.from_pretrained(
                    str(folder),
                    local_files_only=True,
                    use_safetensors=True,
                    attn_implementation=ATTENTION,
                )
            written = read_typed(folder / "config.json", ConfigFile, remedy="export it again")
            _require_names(model.config, written.get("label2id"))
        except RunError:
            raise
        # A configuration of unknown origin meets transformers with exceptions of every type.
        except Exception as error:
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            raise RunError(
                f"the model in {folder} cannot be loaded: {reason}",
                expected="a whole folder written by d2cp export",
                remedy="export it again",
            ) from error
        return cls(model.requires_grad_(False).eval(), mean, std)

    def pixels(self, squares: Sequence[NDArray[np.uint8]]) -> Tensor:
        """uint8 squares of side `resize` as normalised centre crops."""
        images = centre_view(np.stack(squares), self.model.config.image_size)
        return standardised(images, self.mean, self.std)

    def read(self, path: Path) -> NDArray[np.uint8]:
        """The image as training saw it before its crop; raises UnreadableError."""
        return self.square(decode(read_file(path)))

    def square(self, image: Image.Image) -> NDArray[np.uint8]:
        """An upright RGB image as training saw it before its crop."""
        config = self.model.config
        return to_square(image, config.resize, centre_crop=config.centre_crop)

    def predict(self, paths: Sequence[Path], batch_size: int = 32) -> Iterator[dict[str, Any]]:
        """One record a file, in order: label and probabilities, or the error."""
        for start in range(0, len(paths), batch_size):
            part = paths[start : start + batch_size]
            records: list[dict[str, Any]] = [{"file": str(path)} for path in part]
            squares = []
            for record, path in zip(records, part, strict=True):
                try:
                    squares.append(self.read(path))
                except UnreadableError as error:
                    record["error"] = str(error)
            good = [record for record in records if "error" not in record]
            if good:
                self._fill(good, self.pixels(squares))
            yield from records

    @torch.no_grad()
    def _fill(self, records: list[dict[str, Any]], pixels: Tensor) -> None:
        out, config = self.model(pixels), self.model.config
        labels = [config.id2label[index] for index in range(config.num_labels)]
        for record, row in zip(records, out.logits.softmax(1).tolist(), strict=True):
            record["label"], record["probabilities"] = _named(labels, row)
        if out.shortcut_logits is not None:
            rows = out.shortcut_logits.softmax(1).tolist()
            for record, row in zip(records, rows, strict=True):
                value, shares = _named(config.shortcut_labels, row)
                record["shortcut"], record["shortcut_probabilities"] = value, shares


def _require_export(folder: Path) -> None:
    """Folders that people take for an export: a run, a backbone, nothing at all."""
    if (folder / "run.json").is_file():
        model = shlex.quote(f"{folder}-classifier")
        raise RunError(
            f"{folder} is a run, not a classifier to serve",
            expected="a folder written by d2cp export",
            remedy=f"d2cp export {shlex.quote(str(folder))} --to {model}, then "
            f"d2cp predict {model} IMAGES",
        )
    if not (folder / "config.json").is_file():
        raise RunError(
            f"{folder} holds no classifier (no config.json in it)",
            expected="a folder written by d2cp export",
            remedy="d2cp export RUN --to MODEL, then d2cp predict MODEL IMAGES",
        )
    kind = _read(folder / "config.json").get("model_type")
    if kind != D2CPForImageClassification.config_class.model_type:
        raise RunError(
            f"{folder} holds a model of type {kind!r}, which knows no classes of yours",
            expected="a folder written by d2cp export",
            remedy=f"train on it first: d2cp run DATA --backbone {shlex.quote(str(folder))} "
            "--out RUN, then d2cp export RUN --to MODEL",
        )


def _read(path: Path) -> dict[str, Any]:
    return read_typed(path, dict[str, Any], remedy="export it again")


def _triple(values: Any) -> tuple[float, ...]:
    found = tuple(float(value) for value in values)
    if len(found) != 3 or not all(math.isfinite(value) for value in found):
        raise ValueError(f"preprocessor_config.json normalises by {found}")
    return found


def _require_names(config: Any, numbers: dict[str, int] | None) -> None:
    """A name for every answer, as `numbers` has them too, and sizes that images can have."""
    if sorted(config.id2label) != list(range(config.num_labels)):
        raise ValueError(f"config.json names the classes {config.id2label}")
    if numbers is not None and numbers != {name: i for i, name in config.id2label.items()}:
        raise ValueError(f"config.json names the classes {config.id2label} and {numbers}")
    if not 0 < int(config.image_size) <= int(config.resize) <= LARGEST:
        raise ValueError(f"config.json wants {config.resize} and {config.image_size} pixels")
    if config.centre_crop is not None and not 0 < int(config.centre_crop) <= 2**20:
        raise ValueError(f"config.json cuts out {config.centre_crop} pixels")


def _named(names: list[str], shares: list[float]) -> tuple[str, dict[str, float]]:
    named = {name: round(share, 6) for name, share in zip(names, shares, strict=True)}
    return names[int(np.argmax(shares))], named
