"""Accuracy by group, its worst and its means. NumPy alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from d2cp.core.arrays import Bools, Floats, Ints


@dataclass(frozen=True)
class GroupAccuracy:
    """Of the groups that have images: index, number of images, share that is right, and how many
    training images the group has."""

    groups: Ints
    n: Ints
    accuracy: Floats
    train: Floats

    @property
    def worst(self) -> float:
        """WorstAcc = min_g Acc_g."""
        return float(self.accuracy.min())

    @property
    def train_weight(self) -> Floats:
        """The proportions of the training set; groups without test images drop out, and their
        weight with them. Where none is left, the test images' own."""
        return self.train if self.train.sum() else self.n.astype(np.float64)

    def mean(self, weight: Floats) -> float:
        """Σ w_g Acc_g / Σ w_g; with the groups' sizes, the mean over images."""
        return float((self.accuracy * weight).sum() / weight.sum())


def group_accuracy(right: Bools, groups: Ints, train_groups: Ints) -> GroupAccuracy:
    """Acc_g = (1/N_g) Σ 1(argmax f(x_i) = y_i) over the images of group g."""
    if not len(right):
        raise ValueError("there are no images to score")
    present, index, n = np.unique(groups, return_inverse=True, return_counts=True)
    hits = np.bincount(index, weights=right.astype(np.float64), minlength=len(present))
    known, counts = np.unique(train_groups, return_counts=True)
    train = dict(zip(known.tolist(), counts.tolist(), strict=True))
    return GroupAccuracy(
        groups=present.astype(np.int64),
        n=n.astype(np.int64),
        accuracy=hits / n,
        train=np.array([train.get(g, 0) for g in present.tolist()], dtype=np.float64),
    )


@dataclass(frozen=True)
class OverSeeds:
    """Mean ± standard deviation (n - 1) over seeds; no deviation for a single seed."""

    mean: float
    std: float | None
    n: int

    def __str__(self) -> str:
        spread = "" if self.std is None else f" ± {100 * self.std:.2f}"
        return f"{100 * self.mean:.2f}{spread}"


def over_seeds(values: Sequence[float]) -> OverSeeds:
    array = np.asarray(values, dtype=np.float64)
    std = float(array.std(ddof=1)) if len(array) > 1 else None
    return OverSeeds(float(array.mean()), std, len(array))
