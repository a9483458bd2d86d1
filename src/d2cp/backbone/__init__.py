"""One adapter over the Hugging Face ViT families, and the small ViT that ships with D2CP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from d2cp.backbone.adapter import Backbone as Backbone
    from d2cp.backbone.block import Block as Block
    from d2cp.backbone.block import Prefix as Prefix
    from d2cp.backbone.load import backbone_from_config as backbone_from_config
    from d2cp.backbone.load import load_backbone as load_backbone

_HOMES = {
    "Backbone": "adapter",
    "Block": "block",
    "Prefix": "block",
    "backbone_from_config": "load",
    "load_backbone": "load",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """torch is imported when a backbone is first asked for: its identity needs none."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
