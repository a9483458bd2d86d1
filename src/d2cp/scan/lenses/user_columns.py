"""Further columns of the user's CSV as lenses: camera, site, scanner, date of the visit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from d2cp.data.adapters.metadata_csv import choose_columns, find_metadata
from d2cp.data.delimited import read_rows
from d2cp.errors import DataError
from d2cp.scan.batched import Floats
from d2cp.scan.lenses.file_properties import one_hot


def read_columns(
    data: Path, names: Sequence[str], ids: Sequence[str], roles: Mapping[str, str]
) -> dict[str, list[str]]:
    """Values of the named columns in the order of `ids`, the images' file names. `roles` are the
    columns that the user named for file name, class, split and attribute."""
    metadata = find_metadata(data)
    if metadata is None:
        raise DataError(
            f"{data} has no metadata CSV, so no columns {', '.join(names)}",
            expected="a data set described by a CSV",
            remedy="leave --columns out, or describe the images in a metadata.csv",
        )
    rows = read_rows(metadata)
    if missing := [name for name in names if name not in rows.header]:
        raise DataError(
            f"{metadata} has no column {', '.join(missing)}",
            expected=f"some of {', '.join(rows.header[:50])}",
            remedy="name columns as the file's first line does",
        )
    chosen = choose_columns(rows.header, roles, metadata)
    for role, what in (("y", "the class itself"), ("filename", "the file name")):
        if chosen[role] in names:
            raise DataError(
                f"column {chosen[role]} is {what}",
                expected="columns that a model could cheat with, such as camera,site",
                remedy=f"leave {chosen[role]} out of --columns",
            )
    place = {name: row for row, name in enumerate(rows.column(chosen["filename"]))}
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
