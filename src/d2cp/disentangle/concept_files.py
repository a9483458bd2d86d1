"""The concept model and its concepts on disk: safetensors for numbers, JSON for the rest."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file as load_arrays
from safetensors.numpy import save as pack_arrays
from safetensors.torch import load_file, save

from d2cp.config.disentangle import DisentangleConfig
from d2cp.config.strict import build
from d2cp.core.files import write_bytes, write_json
from d2cp.core.typed_json import read_typed
from d2cp.disentangle.autoencoder import VQSpace
from d2cp.disentangle.concept_model import ConceptModel
from d2cp.disentangle.extract import Concepts
from d2cp.disentangle.given_scalars import GivenScalars
from d2cp.disentangle.guide import Guide
from d2cp.disentangle.latent_space import PixelSpace, Space
from d2cp.errors import RunError

MODEL, SETTINGS, CONCEPTS = "model.safetensors", "model.json", "concepts.safetensors"


class GuideShape(TypedDict):
    classes: int
    images: int


class ModelRecord(TypedDict):
    """model.json."""

    config: dict[str, Any]
    guide: GuideShape | None
    given: NotRequired[tuple[int, int] | None]


def save_model(model: ConceptModel, folder: Path) -> None:
    """Write model.safetensors and model.json."""
    tensors = {name: value.cpu().contiguous() for name, value in model.state_dict().items()}
    guide = model.guide
    write_bytes(folder / MODEL, save(tensors))
    shape = None if guide is None else {"classes": guide.classes, "images": len(guide.rows)}
    given = None if model.given is None else list(model.given.values.shape)
    plain = {"config": dataclasses.asdict(model.config), "guide": shape, "given": given}
    write_json(folder / SETTINGS, plain)


def load_model(folder: Path) -> ConceptModel:
    """The model that `save_model` wrote, ready for extraction and pictures."""
    again = f"delete {folder} and run again; other stages are kept"
    settings = read_typed(folder / SETTINGS, ModelRecord, remedy=again)
    config = build(DisentangleConfig, settings["config"])
    try:
        weights = load_file(folder / MODEL)
        guide = None
        if shape := settings["guide"]:
            classes, images = shape["classes"], shape["images"]
            if weights["guide.basis"].shape[0] != classes or len(weights["guide.rows"]) != images:
                raise ValueError(f"a guide of {classes} classes and {images} images")
            guide = Guide.sized(config, classes, images)
        space: Space = (
            VQSpace(config) if config.space == "vq" else PixelSpace(config.size, config.unshuffle)
        )
        given = None
        if sizes := settings.get("given"):
            if list(weights["given.values"].shape) != list(sizes):
                raise ValueError(f"given scalars of shape {sizes}")
            given = GivenScalars(*sizes)
        model = ConceptModel(config, space, guide, 0, given)
        model.load_state_dict(weights)
    except (SafetensorError, OSError, RuntimeError, KeyError, ValueError) as error:
        raise RunError(
            f"{folder / MODEL} cannot be read: {error}",
            expected="the weights that belong to model.json",
            remedy=again,
        ) from error
    return model.requires_grad_(False).eval()


def save_concepts(concepts: Concepts, rows: NDArray[np.int64], folder: Path) -> None:
    """Scalars and tokens with the table rows they belong to."""
    arrays = {"scalars": concepts.scalars, "tokens": concepts.tokens, "rows": rows}
    write_bytes(folder / CONCEPTS, pack_arrays(arrays))


def load_concepts(folder: Path) -> tuple[Concepts, NDArray[np.int64]]:
    try:
        arrays = load_arrays(folder / CONCEPTS)
        scalars, tokens, rows = arrays["scalars"], arrays["tokens"], arrays["rows"]
        if tokens.ndim != 3 or scalars.shape != tokens.shape[:2] or rows.shape != scalars.shape[:1]:
            raise ValueError(f"shapes {scalars.shape}, {tokens.shape}, {rows.shape}")
        return Concepts(scalars, tokens), rows
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise RunError(
            f"{folder / CONCEPTS} cannot be read: {error}",
            remedy=f"delete {folder} and run again; other stages are kept",
        ) from error
