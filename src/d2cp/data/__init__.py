"""The data layer: one table behind every data set, and its images at working size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from d2cp.data.image_access import load_images as load_images
    from d2cp.data.image_access import open_images as open_images
    from d2cp.data.mnist import load_mnist as load_mnist
    from d2cp.data.open_table import load_table as load_table
    from d2cp.data.store import ImageStore as ImageStore
    from d2cp.data.store import quarantine as quarantine
    from d2cp.data.store import usable as usable
    from d2cp.data.table import SPLITS as SPLITS
    from d2cp.data.table import Table as Table

_HOMES = {
    "SPLITS": "table",
    "Table": "table",
    "ImageStore": "store",
    "quarantine": "store",
    "usable": "store",
    "load_images": "image_access",
    "load_mnist": "mnist",
    "load_table": "open_table",
    "open_images": "image_access",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Modules are imported when one of their names is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
