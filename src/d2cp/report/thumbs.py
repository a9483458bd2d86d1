"""The sampled images, read from the data set and encoded."""

from __future__ import annotations

import tempfile

import numpy as np

from d2cp.core.arrays import Ints
from d2cp.data.image_access import open_images
from d2cp.data.source import ColouredSource
from d2cp.data.store import ImageStore
from d2cp.data.table import Table
from d2cp.errors import DataError
from d2cp.report.encode import thumbnail

SIDE = 160


def load_thumbnails(table: Table, ids: list[str], rows: Ints, budget: int) -> dict[int, bytes]:
    """Encoded images by row of the run: as many as `budget` bytes hold, in the order of `rows`."""
    where = {str(name): index for index, name in enumerate(table.ids)}
    found = [(int(row), where[ids[row]]) for row in rows if ids[row] in where]
    if not found:
        raise DataError("none of the run's images is in the data set now")
    part = table.subset(np.array([index for _, index in found], dtype=np.int64))
    side = part.source.side if isinstance(part.source, ColouredSource) else SIDE
    # A few hundred small squares: not worth an entry in the user's cache.
    with tempfile.TemporaryDirectory(prefix="d2cp-report-") as folder:
        store = open_images(part, side, folder, quiet=True)
        return _encode(store, [row for row, _ in found], budget)


def _encode(store: ImageStore, rows: list[int], budget: int) -> dict[int, bytes]:
    kept: dict[int, bytes] = {}
    spent = 0
    for index in store.good_rows().tolist():
        data = thumbnail(store[np.array([index])][0])
        spent += len(data)
        if spent > budget:
            break
        kept[rows[index]] = data
    return kept
