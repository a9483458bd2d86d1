"""Splits: names and numbers → codes, and a seeded stratified split where there is none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from d2cp.core.rng import numpy_generator
from d2cp.data.table import SPLIT_NAMES
from d2cp.errors import DataError

FRACTIONS = (0.7, 0.15, 0.15)
_SPELLINGS = {
    "train": ("0", "0.0", "train", "training", "tr"),
    "val": ("1", "1.0", "val", "valid", "validation", "dev"),
    "test": ("2", "2.0", "test", "testing", "te"),
    "test_balanced": ("test_balanced",),
}
_CODES = {
    spelling: SPLIT_NAMES.index(name) for name, all_ in _SPELLINGS.items() for spelling in all_
}


def split_of(name: str) -> int | None:
    """The code of a split by any usual name, or None."""
    return _CODES.get(name.strip().lower())


def parse_splits(values: Sequence[str], what: str) -> NDArray[np.int8]:
    code_of = {value: split_of(value) for value in set(values)}
    if None in code_of.values():
        row, value = next((r, v) for r, v in enumerate(values) if code_of[v] is None)
        raise DataError(
            f"{what}: split {value!r} in row {row + 1}",
            expected="0, 1, 2 or train, val, test",
        )
    return np.fromiter((code_of[value] for value in values), np.int8, len(values))


def stratified_split(
    y: NDArray[np.int64], seed: int, fractions: tuple[float, float, float] = FRACTIONS
) -> NDArray[np.int8]:
    """Each class shared out alike; a class too small for three splits fills train first."""
    if min(fractions) < 0 or abs(sum(fractions) - 1) > 1e-6 or fractions[0] == 0:
        raise DataError(
            f"split fractions {fractions}", expected="train, val, test shares that sum to 1"
        )
    split = np.zeros(len(y), dtype=np.int8)
    generator = numpy_generator(seed, "split")
    for label in np.unique(y):
        members = generator.permutation(np.flatnonzero(y == label))
        n = len(members)
        n_val, n_test = (int(fraction * n + 0.5) for fraction in fractions[1:])
        n_val, n_test = min(n_val, max(n - 1, 0)), min(n_test, max(n - 1 - n_val, 0))
        split[members[:n_val]] = 1
        split[members[n_val : n_val + n_test]] = 2
    return split


def carve_validation(
    y: NDArray[np.int64], split: NDArray[np.int8], seed: int, share: float
) -> NDArray[np.int8]:
    """Some of the training rows of each class become validation rows."""
    rows = np.flatnonzero(split == 0)
    carved = split.copy()
    carved[rows] = stratified_split(y[rows], seed, (1 - share, share, 0.0))
    return carved
