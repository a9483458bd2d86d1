"""Labels of any spelling → 0..n-1, with the original names kept."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from d2cp.errors import DataError

_INTEGER = re.compile(r"[+-]?\d+(\.0*)?")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.I)
_MISSING = frozenset({"", "nan", "null", "n/a"})


def encode(values: Sequence[str], what: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Codes in the order of the sorted names: numeric for integers (1.0 is 1), else alphabetical.
    A missing value, or a fraction among numbers, is an error that names its first row."""
    for row, value in enumerate(values):
        if value.strip().lower() in _MISSING:
            raise DataError(
                f"{what}: no value in row {row + 1} ({value!r})",
                expected="a label in every row",
                remedy="fill it in, or remove the row",
            )
    names = list(values)
    distinct = set(names)
    if all(_NUMBER.fullmatch(value) for value in distinct):
        for row, value in enumerate(values):
            if not _INTEGER.fullmatch(value):
                raise DataError(
                    f"{what}: {value!r} in row {row + 1} is not a whole number",
                    expected="integers (1.0 is read as 1) or words",
                    remedy="turn a measured quantity into classes first",
                )
        names = [str(int(value.split(".")[0])) for value in values]
        ordered = sorted(set(names), key=int)
    else:
        ordered = sorted(distinct)
    code = {name: number for number, name in enumerate(ordered)}
    return np.array([code[name] for name in names], dtype=np.int64), tuple(ordered)
