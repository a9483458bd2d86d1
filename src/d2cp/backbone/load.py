"""Find a backbone by name or folder, check it before use, and wrap it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from d2cp.backbone.adapter import Backbone
from d2cp.backbone.families import Family, Triple, family_of
from d2cp.backbone.identity import EMBEDDED
from d2cp.backbone.plain_config import require_plain, require_room
from d2cp.core.files import parsed_json
from d2cp.core.network import hub_within_reach
from d2cp.core.rng import derive
from d2cp.errors import BackboneError

EMBEDDED_FOLDER = Path(__file__).parent / "embedded"
_INDEX = "model.safetensors.index.json"
_WEIGHTS = ("model.safetensors", _INDEX)
# Ours, never the configuration's: there it may name code to be fetched and run.
ATTENTION = "eager"
LARGEST = 1e6  # of a pixel's mean or deviation


def load_backbone(name_or_folder: str | Path, keep_patches: float = 1.0) -> Backbone:
    """`embedded`, a folder with config.json and safetensors, or a name on the Hugging Face hub;
    below 1, its features with only such a share of the patches (`Backbone.thinned`)."""
    return _loaded(name_or_folder).thinned(keep_patches)


def _loaded(name_or_folder: str | Path) -> Backbone:
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
    config._attn_implementation = ATTENTION
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
    require_safetensors(folder)
    require_plain(config, folder)
    normalisation = _normalisation(_read_json(folder / "preprocessor_config.json"), family)
    return _load(str(folder), name, family, normalisation, local_files_only=True)


def require_safetensors(folder: Path) -> None:
    """Refuse a folder whose index of shards leads to anything but safetensors files."""
    _check_index(_read_json(folder / _INDEX), folder)


def _check_index(index: dict[str, Any] | None, source: Path | str) -> None:
    """The files that an index of shards names are opened by what they end in: a pickle too."""
    shards = (index or {}).get("weight_map", {})
    names = list(shards.values()) if isinstance(shards, dict) else [shards]
    for file in sorted(names, key=str):
        if (
            not isinstance(file, str)
            or not file.endswith(".safetensors")
            or Path(file).name != file
        ):
            raise BackboneError(
                f"the index of weights of {source} names {file!r}",
                expected="safetensors files beside the index",
                remedy="pickled weights are never read: take the safetensors version",
            )


def _from_hub(name: str) -> Backbone:
    from transformers import AutoConfig
    from transformers.utils import cached_file

    # Without a network only what was fetched before is looked for: no retries, no waiting.
    local = not hub_within_reach()

    def fetched(file: str) -> dict[str, Any] | None:
        path = cached_file(
            name,
            file,
            local_files_only=local,
            _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=False,
        )
        return _read_json(Path(path)) if path else None

    try:
        with quiet():
            config = AutoConfig.from_pretrained(
                name, trust_remote_code=False, local_files_only=local
            )
            preprocessor, index = fetched("preprocessor_config.json"), fetched(_INDEX)
    except (OSError, ValueError) as error:
        raise _unreachable(name, error, local) from error
    _check_index(index, name)
    family = family_of(str(config.model_type), name)
    return _load(name, name, family, _normalisation(preprocessor, family), local_files_only=local)


def _unreachable(name: str, error: Exception, local: bool) -> BackboneError:
    reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
    if local:
        reason = "there is no network, and it has not been downloaded before"
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
    try:
        with quiet():
            if Path(source).is_dir():
                require_room(_configuration(source, family), family, Path(source))
            model, info = family.model().from_pretrained(
                source,
                dtype=torch.float32,
                use_safetensors=True,
                local_files_only=local_files_only,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # refused below, by name
                attn_implementation=ATTENTION,
                **family.options,
            )
    except BackboneError:
        raise
    # A configuration of unknown origin meets transformers with exceptions of every type.
    except Exception as error:
        if isinstance(error, OSError) and not Path(source).is_dir():
            raise _unreachable(name, error, local_files_only) from error
        raise _unreadable(source, error) from error
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
    for part, value in model.named_parameters():
        if not torch.isfinite(value).all():
            raise BackboneError(
                f"the weight {part} of {source} has values that are not finite",
                expected="finite weights",
                remedy="download or copy the folder again",
            )
    return Backbone(model, config, family, name, normalisation)


def _configuration(source: str, family: Family) -> Any:
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(source, trust_remote_code=False, local_files_only=True)
    config = config.vision_config if config.model_type == "clip" else config
    config._attn_implementation = ATTENTION
    return config


def _unreadable(source: str, error: Exception) -> BackboneError:
    reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
    return BackboneError(
        f"the weights of {source} cannot be read: {reason}",
        expected="whole safetensors files that fit config.json",
        remedy="download or copy the folder again",
    )


def _read_json(path: Path) -> dict[str, Any] | None:
    if not os.path.lexists(path):  # a link that leads nowhere is no absent file
        return None
    try:
        content = parsed_json(path)
    except (ValueError, OSError, RecursionError) as error:
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
    return _triple(preprocessor["image_mean"]), _triple(preprocessor["image_std"], above=0.0)


def _triple(value: Any, *, above: float = -math.inf) -> Triple:
    values = value if isinstance(value, list) else [value] * 3
    numbers = [float(v) for v in values if type(v) in (int, float) and abs(v) < LARGEST]
    if len(numbers) != len(values) or not all(above < v for v in numbers):
        raise BackboneError(
            f"preprocessor_config.json normalises by {str(values)[:80]}",
            expected="finite numbers, and deviations above 0",
            remedy="download or copy the folder again",
        )
    if len(numbers) != 3:
        raise BackboneError(
            f"preprocessor_config.json normalises {len(values)} channels",
            expected="3 colour channels",
            remedy="choose a backbone trained on RGB images",
        )
    return numbers[0], numbers[1], numbers[2]


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
