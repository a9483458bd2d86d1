"""Adapters: a layout on disk → the table. To add one: a file beside this, a line below."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from d2cp.data.adapters import (
    celeba,
    class_folders,
    hub,
    metadata_csv,
    metashift,
    mnist_idx,
    waterbirds,
)
from d2cp.data.assemble import Options
from d2cp.data.table import Table


@dataclass(frozen=True)
class Adapter:
    layout: str  # the expected tree, shown when it is not found
    recognise: Callable[[Path], bool]
    load: Callable[[Path, Options], Table]


# In the order in which they are tried: the particular before the general.
ADAPTERS: dict[str, Adapter] = {
    "mnist": Adapter(mnist_idx.LAYOUT, mnist_idx.recognise, mnist_idx.load),
    "celeba": Adapter(celeba.LAYOUT, celeba.recognise, celeba.load),
    "waterbirds": Adapter(waterbirds.LAYOUT, waterbirds.recognise, waterbirds.load),
    "metashift": Adapter(metashift.LAYOUT, metashift.recognise, metashift.load),
    "hub": Adapter(hub.LAYOUT, hub.recognise, hub.load),
    "csv": Adapter(metadata_csv.LAYOUT, metadata_csv.recognise, metadata_csv.load),
    "folders": Adapter(class_folders.LAYOUT, class_folders.recognise, class_folders.load),
}
