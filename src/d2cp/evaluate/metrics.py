"""Accuracy by group, its worst and its means, and intervals around them. NumPy alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from d2cp.core.rng import numpy_generator

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class GroupAccuracy:
    """Of the groups that have images: index, number of images, share that is right."""

    groups: Ints
    n: Ints
    accuracy: Floats

    @property
    def worst(self) -> float:
        """WorstAcc = min_g Acc_g."""
        return float(self.accuracy.min())

    @property
    def mean(self) -> float:
        """MeanAcc: over images."""
        return float((self.accuracy * self.n).sum() / self.n.sum())

    def weighted(self, train_counts: Mapping[int, int]) -> float:
        """Mean over groups with the proportions of the training set; groups without test images
        drop out, and their weight with them."""
        weight = np.array([train_counts.get(int(g), 0) for g in self.groups], dtype=np.float64)
        if not weight.sum():
            return self.mean
        return float((self.accuracy * weight).sum() / weight.sum())


def group_accuracy(right: Bools, groups: Ints) -> GroupAccuracy:
    """Acc_g = (1/N_g) Σ 1(argmax f(x_i) = y_i) over the images of group g."""
    if not len(right):
        raise ValueError("there are no images to score")
    present, index, n = np.unique(groups, return_inverse=True, return_counts=True)
    hits = np.bincount(index, weights=right.astype(np.float64), minlength=len(present))
    return GroupAccuracy(present.astype(np.int64), n.astype(np.int64), hits / n)


@dataclass(frozen=True)
class Interval:
    low: float
    high: float


def bootstrap(
    right: Bools,
    groups: Ints,
    train_counts: Mapping[int, int],
    *,
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> dict[str, Interval]:
    """Percentile intervals of worst_group, mean and train_weighted_mean.

    Images are drawn anew within each group, whose size is part of the design of the test set: the
    number of hits of a group is then binomial, so no resample of images has to be made.
    """
    found = group_accuracy(right, groups)
    generator = numpy_generator(seed, "evaluate/bootstrap")
    hits = generator.binomial(found.n, found.accuracy, size=(resamples, len(found.n)))
    accuracy = hits / found.n
    weight = np.array([train_counts.get(int(g), 0) for g in found.groups], dtype=np.float64)
    weight = weight if weight.sum() else found.n.astype(np.float64)
    draws = {
        "worst_group": accuracy.min(axis=1),
        "mean": (accuracy * found.n).sum(axis=1) / found.n.sum(),
        "train_weighted_mean": (accuracy * weight).sum(axis=1) / weight.sum(),
    }
    tails = 100 * np.array([(1 - confidence) / 2, (1 + confidence) / 2])
    return {
        name: Interval(*(float(v) for v in np.percentile(values, tails)))
        for name, values in draws.items()
    }


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
