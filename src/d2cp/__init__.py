"""D2CP: find the shortcut in an image data set, show it, train a classifier without it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d2cp.core.late_registration import register_with_transformers

__version__ = "0.2.0"

if TYPE_CHECKING:
    from d2cp.api import discover as discover
    from d2cp.config import load_config as load_config
    from d2cp.data import load_table as load_table
    from d2cp.estimator import D2CP as D2CP

_HOMES = {
    "D2CP": "d2cp.estimator",
    "discover": "d2cp.api",
    "load_config": "d2cp.config",
    "load_table": "d2cp.data",
}
__all__ = ["D2CP", "__version__", "discover", "load_config", "load_table"]


def __getattr__(name: str) -> Any:
    """Public names are imported when first asked for: `import d2cp` stays quick."""
    if name not in _HOMES:
        raise AttributeError(f"module 'd2cp' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


# `pipeline("image-classification", model=FOLDER)` then loads what `d2cp export` wrote.
register_with_transformers("d2cp.export.model_type")
