"""Find a backbone by name or folder, check it before use, and wrap it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from d2cp.backbone.adapter import Backbone
from d2cp.backbone.families import Family, Triple, family_of
from d2cp.core.rng import derive
from d2cp.errors import BackboneError

EMBEDDED = "embedded"
EMBEDDED_FOLDER = Path(__file__).parent / "embedded"
_WEIGHTS = ("model.safetensors", "model.safetensors.index.json")


def load_backbone(name_or_folder: str | Path) -> Backbone:
    """`embedded`, a folder with config.json and safetensors, or a name on the Hugging Face hub."""
    if str(name_or_folder) == EMBEDDED:
        return _from_folder(EMBEDDED_FOLDER, EMBEDDED)
    folder = Path(name_or_folder).expanduser()
    if folder.is_dir():
        return _from_folder(folder, folder.name)
    if isinstance(name_or_folder, Path) or _looks_like_path(name_or_folder):
        raise BackboneError(
            f"there is no backbone folder {name_or_folder}",
            expected="a folder with config.json and model.safetensors",
            remedy="check the path, or use the backbone named 'embedded'",
        )
    return _from_hub(name_or_folder)


def backbone_from_config(family_config: Any, seed: int = 0) -> Backbone:
    """Random weights for a transformers configuration: for tests, shapes and memory."""
    model_type = str(family_config.model_type)
    family = family_of(model_type, "this configuration")
    config = family_config.vision_config if model_type == "clip" else family_config
    # transformers initialises from the global generator: give it a fork that ends here.
    with torch.random.fork_rng(devices=[]), quiet():
        torch.manual_seed(derive(seed, "backbone/random"))
        model = family.model()(config, **family.options)
    return Backbone(model.float(), config, family, f"random-{family.name}", family.normalisation)


def _looks_like_path(name: str) -> bool:
    return name.startswith((".", "/", "~")) or name.count("/") > 1 or "\\" in name


def _from_folder(folder: Path, name: str) -> Backbone:
    config = _read_json(folder / "config.json")
    if config is None:
        raise BackboneError(
            f"{folder} has no config.json",
            expected="a folder written by save_pretrained",
            remedy="pass the folder that holds config.json and model.safetensors",
        )
    family = family_of(str(config.get("model_type", "unknown")), str(folder))
    if not any((folder / file).is_file() for file in _WEIGHTS):
        raise BackboneError(
            f"{folder} has a config.json but no weights",
            expected=" or ".join(_WEIGHTS),
            remedy="download the safetensors file too; pickled .bin weights are never read "
            "(save_pretrained(folder) of a loaded model writes safetensors)",
        )
    normalisation = _normalisation(_read_json(folder / "preprocessor_config.json"), family)
    return _load(str(folder), name, family, normalisation, local_files_only=True)


def _from_hub(name: str) -> Backbone:
    from transformers import AutoConfig
    from transformers.utils import cached_file

    try:
        with quiet():
            config = AutoConfig.from_pretrained(name)
            file = cached_file(
                name,
                "preprocessor_config.json",
                _raise_exceptions_for_missing_entries=False,
                _raise_exceptions_for_connection_errors=False,
            )
    except (OSError, ValueError) as error:
        raise _unreachable(name, error) from error
    family = family_of(str(config.model_type), name)
    normalisation = _normalisation(_read_json(Path(file)) if file else None, family)
    return _load(name, name, family, normalisation, local_files_only=False)


def _unreachable(name: str, error: Exception) -> BackboneError:
    reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
    return BackboneError(
        f"the backbone {name!r} could not be had from the Hugging Face hub: {reason}",
        expected="a name on the hub that this machine can reach, or a local folder",
        remedy="without a network, download config.json, preprocessor_config.json and "
        "model.safetensors elsewhere, put them in one folder and pass that folder; "
        "or use the backbone named 'embedded'",
    )


def _load(
    source: str,
    name: str,
    family: Family,
    normalisation: tuple[Triple, Triple],
    *,
    local_files_only: bool,
) -> Backbone:
    from safetensors import SafetensorError

    try:
        with quiet():
            model, info = family.model().from_pretrained(
                source,
                dtype=torch.float32,
                use_safetensors=True,
                local_files_only=local_files_only,
                output_loading_info=True,
                **family.options,
            )
    except (SafetensorError, RuntimeError, ValueError, KeyError, json.JSONDecodeError) as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise BackboneError(
            f"the weights of {source} cannot be read: {reason}",
            expected="whole safetensors files that fit config.json",
            remedy="download or copy the folder again",
        ) from error
    except OSError as error:
        raise _unreachable(name, error) from error
    missing = sorted(info["missing_keys"]) + sorted(str(key) for key in info["mismatched_keys"])
    if missing:
        raise BackboneError(
            f"{len(missing)} weights of {source} are absent or of another shape, "
            f"the first: {missing[0]}",
            expected=f"all weights of a {family.name} model",
            remedy="take config.json and the weights from the same model",
        )
    config = model.config
    if int(getattr(config, "num_channels", 3)) != 3:
        raise BackboneError(
            f"{source} takes {config.num_channels} channels",
            expected="3 colour channels",
            remedy="choose a backbone trained on RGB images",
        )
    return Backbone(model, config, family, name, normalisation)


def _read_json(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise BackboneError(
            f"{path} is not readable JSON: {error}",
            expected="a JSON object",
            remedy="download or copy the folder again",
        ) from error
    if not isinstance(content, dict):
        raise BackboneError(f"{path} holds no JSON object", remedy="copy the folder again")
    return content


def _normalisation(preprocessor: dict[str, Any] | None, family: Family) -> tuple[Triple, Triple]:
    """Mean and deviation from preprocessor_config.json, else those the family was trained with."""
    if not preprocessor:
        return family.normalisation
    if preprocessor.get("do_normalize") is False:
        return (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
    if "image_mean" not in preprocessor or "image_std" not in preprocessor:
        return family.normalisation
    return _triple(preprocessor["image_mean"]), _triple(preprocessor["image_std"])


def _triple(value: Any) -> Triple:
    values = [float(v) for v in value] if isinstance(value, list) else [float(value)] * 3
    if len(values) != 3:
        raise BackboneError(
            f"preprocessor_config.json normalises {len(values)} channels",
            expected="3 colour channels",
            remedy="choose a backbone trained on RGB images",
        )
    return values[0], values[1], values[2]


@contextmanager
def quiet() -> Iterator[None]:
    """No log line and no progress bar of transformers while a model is loaded."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
