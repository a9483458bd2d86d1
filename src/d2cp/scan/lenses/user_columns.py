"""Further columns of the user's CSV as lenses: camera, site, scanner, date of the visit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from d2cp.data.adapters.metadata_csv import NAMES, find_metadata
from d2cp.data.delimited import read_rows
from d2cp.errors import DataError
from d2cp.scan.batched import Floats
from d2cp.scan.lenses.file_properties import one_hot


def read_columns(data: Path, names: Sequence[str], ids: Sequence[str]) -> dict[str, list[str]]:
    """Values of the named columns in the order of `ids`, the images' file names."""
    metadata = find_metadata(data)
    if metadata is None:
        raise DataError(
            f"{data} has no metadata CSV, so no columns {', '.join(names)}",
            expected="a data set described by a CSV",
            remedy="leave --columns out, or describe the images in a metadata.csv",
        )
    rows = read_rows(metadata)
    lower = {name.lower(): name for name in rows.header}
    filename = next((lower[name] for name in NAMES["filename"] if name in lower), None)
    missing = [name for name in names if name not in rows.header]
    if missing or filename is None:
        raise DataError(
            f"{metadata} has no column {', '.join(missing) or 'of file names'}",
            expected=f"some of {', '.join(rows.header[:50])}",
            remedy="name columns as the file's first line does",
        )
    place = {name: row for row, name in enumerate(rows.column(filename))}
    order = [place.get(name, -1) for name in ids]
    return {name: [rows.column(name)[row] if row >= 0 else "" for row in order] for name in names}


def column_features(values: Sequence[str], name: str) -> tuple[Floats, tuple[str, ...]]:
    """A number and its square where every value is one and there are many, else a feature for each
    frequent value."""
    try:
        numbers = np.array([float(value) for value in values], dtype=np.float32)
        if len(np.unique(numbers)) > 20 and np.isfinite(numbers).all():
            spread = (numbers - numbers.mean()) / (numbers.std() + 1e-9)
            return np.stack([numbers, spread**2], axis=1), (name, f"{name}²")
    except ValueError:
        pass
    columns, names = one_hot(values, name)
    return np.stack(columns, axis=1), tuple(names)
