"""95% intervals of accuracies by group: never of no width, and closed forms, so nothing is drawn.

A resample of a group with no hit has no hit: a bootstrap says "0.0, surely" of 0 right of 24.
Wilson's score interval does not, and the figures over groups are put together from it.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
CONFIDENCE = 0.95


class Interval(NamedTuple):
    low: float
    high: float


def wilson(
    accuracy: Floats, n: Counts, tail: float = (1 - CONFIDENCE) / 2
) -> tuple[Floats, Floats]:
    """Bounds of each share of `n` images, either of them wrong with probability `tail`:
    the p with |p̂ - p| = z √(p (1 - p) / n)."""
    z = NormalDist().inv_cdf(1 - tail)
    scale = 1 + z * z / n
    centre = (accuracy + z * z / (2 * n)) / scale
    half = z / scale * np.sqrt(accuracy * (1 - accuracy) / n + (z / (2 * n)) ** 2)
    # Rounding may leave 1e-17 of an interval that starts at 0 on the wrong side of its share.
    return np.minimum(accuracy, np.maximum(0.0, centre - half)), np.maximum(
        accuracy, np.minimum(1.0, centre + half)
    )


def share_interval(accuracy: float, n: int) -> Interval:
    """Wilson's interval of one share."""
    low, high = wilson(np.array([accuracy]), np.array([n]))
    return Interval(float(low[0]), float(high[0]))


def worst_interval(accuracy: Floats, n: Counts) -> Interval:
    """Of min_g p_g, whichever group that is: [min_g L_g, min_g U_g].

    Below, the bound of the group that truly is the worst is enough: the least of all bounds is
    lower still. Above, every group's bound has to hold, so each gets a share of the tail (Šidák):
    the more groups, the more luck was in picking the lowest.
    """
    tail = (1 - CONFIDENCE) / 2
    low, _ = wilson(accuracy, n, tail)
    _, high = wilson(accuracy, n, 1 - (1 - tail) ** (1 / len(n)))
    return Interval(float(low.min()), float(high.min()))


def mean_interval(accuracy: Floats, n: Counts, weight: Floats) -> Interval:
    """Of Σ w_g p_g / Σ w_g: distances to Wilson's bounds added in quadrature (Zou and Donner's
    MOVER). Groups keep their sizes: these are part of the design of a test set."""
    share = weight / weight.sum()
    low, high = wilson(accuracy, n)
    value = float((share * accuracy).sum())
    below = math.sqrt(float(((share * (accuracy - low)) ** 2).sum()))
    above = math.sqrt(float(((share * (high - accuracy)) ** 2).sum()))
    return Interval(max(0.0, value - below), min(1.0, value + above))
