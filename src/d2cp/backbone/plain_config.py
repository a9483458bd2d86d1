"""A backbone's config.json before anything is built from it: sizes that a ViT can have, and no more
weights than the files hold. What it says beyond that is transformers' to judge."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from d2cp.backbone.families import Family
from d2cp.errors import BackboneError

LARGEST = {
    "hidden_size": 2**14,
    "intermediate_size": 2**17,
    "num_hidden_layers": 512,
    "num_attention_heads": 512,
    "patch_size": 512,
    "image_size": 4096,
    "num_channels": 64,
    "num_register_tokens": 1024,
}
SMALL = 50_000_000  # weights that can be made and thrown away
MAY_BE_ZERO = ("num_register_tokens",)


def require_plain(config: Mapping[str, Any], source: Path) -> None:
    """Whole numbers within bounds, where it gives them, and heads that divide the width."""
    part = config.get("vision_config", config) if config.get("model_type") == "clip" else config
    if not isinstance(part, Mapping):
        raise _refused(source, f"vision_config = {part!r:.60}", "an object")
    for name, largest in LARGEST.items():
        value, least = part.get(name, 1), 0 if name in MAY_BE_ZERO else 1
        if type(value) is not int or not least <= value <= largest:
            raise _refused(source, f"{name} = {value!r:.60}", f"a number from {least} to {largest}")
    if part.get("hidden_size", 768) % part.get("num_attention_heads", 12):
        raise _refused(source, "heads that do not divide hidden_size", "equal heads")
    if part.get("image_size", 224) < part.get("patch_size", 1):
        raise _refused(source, "images smaller than a patch", "at least one patch")


def require_room(config: Any, family: Family, folder: Path) -> None:
    """Refuse a large model of more weights than the files have bytes: it would be made all the
    same, of random numbers, and only then found wanting."""
    import torch

    with torch.device("meta"):  # counts without allocating
        described = sum(p.numel() for p in family.model()(config, **family.options).parameters())
    stored = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    if described > max(stored, SMALL):
        raise _refused(
            folder,
            f"a model of {described:,} weights",
            f"at most as many as the safetensors files have bytes, {stored:,}",
        )


def _refused(source: Path, found: str, expected: str) -> BackboneError:
    return BackboneError(
        f"{source / 'config.json'} describes {found}",
        expected=expected,
        remedy="download or copy the folder again, config.json and weights of the same model",
    )
