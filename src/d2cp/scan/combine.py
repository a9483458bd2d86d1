"""Several findings as one pseudo attribute: the product of their values, rare cells merged.

A cell is a class and one combination of values. Of a class's cells the largest is the usual one.
Any other that has fewer than RARE training images is too small to be drawn evenly, and its images
go to the nearest cell of their class that is large enough and not the usual one: the fewest values
changed, those of later findings first. Where there is none, the rare cells become one, so that the
images that go against the findings stay apart from those that follow them. A single finding is
taken as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from d2cp.core.arrays import Ints

RARE = 10


@dataclass(frozen=True)
class Merged:
    """Training images of a class that were given the value of another cell."""

    label: int
    value: int
    into: int
    images: int


@dataclass(frozen=True)
class Combined:
    labels: Ints
    """One a row, 0 … values-1."""
    parts: tuple[tuple[int, ...], ...]
    """The findings' own values behind each value."""
    merged: tuple[Merged, ...]
    """`value` and `into` are numbers of the full product, see `code_of`."""


def code_of(values: Sequence[int], sizes: Sequence[int]) -> int:
    """The number of a combination in the full product; the last finding's value counts fastest."""
    return int(np.ravel_multi_index(tuple(values), tuple(sizes)))


def combine(
    values: Sequence[Ints], sizes: Sequence[int], y: Ints, train: Ints, known: Ints
) -> Combined:
    """`values` has one array a finding over all rows. Cells are counted on the rows `train`; the
    class of a row has a say only in the rows `known` (train and validation): elsewhere a
    combination that was merged away in all classes takes the nearest that is left."""
    codes = np.ravel_multi_index(tuple(values), tuple(sizes)).astype(np.int64)
    total = int(np.prod(sizes))
    parts = np.stack(np.unravel_index(np.arange(total), tuple(sizes)), axis=1)
    classes = int(y[known].max()) + 1
    counts = np.zeros((classes, total), dtype=np.int64)
    np.add.at(counts, (y[train], codes[train]), 1)
    targets = np.tile(np.arange(total), (classes, 1))
    if len(values) > 1:
        targets = np.stack([_targets(row, parts) for row in counts])
    merged = [
        Merged(c, v, int(targets[c, v]), int(counts[c, v]))
        for c, v in zip(*np.nonzero(counts), strict=True)
        if targets[c, v] != v
    ]
    labels = codes.copy()
    labels[known] = targets[y[known], codes[known]]
    left = np.unique(labels[train])
    nearest = np.array([_nearest(v, left, counts.sum(0), parts) for v in range(total)])
    number = np.full(total, -1)
    number[left] = np.arange(len(left))
    return Combined(
        labels=number[nearest[labels]].astype(np.int64),
        parts=tuple(tuple(int(p) for p in parts[v]) for v in left),
        merged=tuple(merged),
    )


def _targets(counts: Ints, parts: Ints) -> Ints:
    """Where the images of each combination go in a class with these counts."""
    found = np.arange(len(counts))
    usual = int(counts.argmax())
    others = [v for v in range(len(counts)) if v != usual]
    large = [v for v in others if counts[v] >= RARE]
    if not large:
        present = [v for v in others if counts[v]]
        large = [max(present, key=lambda v: (counts[v], -v))] if present else [usual]
    for v in others:
        if counts[v] < RARE:
            found[v] = _nearest(v, large, counts, parts)
    return found


def _nearest(value: int, among: Sequence[int] | Ints, counts: Ints, parts: Ints) -> int:
    def distance(other: int) -> tuple[int, tuple[bool, ...], int, int]:
        differs = parts[other] != parts[value]
        return int(differs.sum()), tuple(differs.tolist()), -int(counts[other]), other

    return min((int(v) for v in among), key=distance)
