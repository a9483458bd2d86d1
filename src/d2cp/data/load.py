"""A name or a path → a table."""

from __future__ import annotations

from pathlib import Path

from d2cp.data.coloured import EMBEDDED_SETS, load_embedded
from d2cp.data.table import Table
from d2cp.errors import DataError


def load_table(path: str | Path, *, limit: int | None = None, seed: int = 0) -> Table:
    if str(path) in EMBEDDED_SETS:
        table = load_embedded(str(path))
    else:
        raise DataError(f"{path} is not an embedded data set")
    return table if limit is None else table.subsample(limit, seed)
