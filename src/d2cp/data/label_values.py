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
    distinct = set(values)
    if empty := {value for value in distinct if value.strip().lower() in _MISSING}:
        row, value = _first(values, empty)
        raise DataError(
            f"{what}: no value in row {row + 1} ({value!r})",
            expected="a label in every row",
            remedy="fill it in, or remove the row",
        )
    name_of = {value: value for value in distinct}
    if all(_NUMBER.fullmatch(value) for value in distinct):
        if broken := {value for value in distinct if not _INTEGER.fullmatch(value)}:
            row, value = _first(values, broken)
            raise DataError(
                f"{what}: {value!r} in row {row + 1} is not a whole number",
                expected="integers (1.0 is read as 1) or words",
                remedy="turn a measured quantity into classes first",
            )
        name_of = {value: str(int(value.split(".")[0])) for value in distinct}
        ordered = sorted(set(name_of.values()), key=int)
    else:
        ordered = sorted(distinct)
    number = {name: code for code, name in enumerate(ordered)}
    code_of = {value: number[name] for value, name in name_of.items()}
    codes = np.fromiter((code_of[value] for value in values), np.int64, len(values))
    return codes, tuple(ordered)


def _first(values: Sequence[str], wanted: set[str]) -> tuple[int, str]:
    """The first row with one of these values."""
    return next((row, value) for row, value in enumerate(values) if value in wanted)
