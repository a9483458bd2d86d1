"""Where to cut the spurious score in two."""

from __future__ import annotations

import numpy as np

from d2cp.mine.arrays import Floats
from d2cp.mine.mixture import fit_two_gaussians


def midpoint(low_prototype: float, high_prototype: float) -> float:
    """Half way between the scores of the two classes' prototypes."""
    return 0.5 * (low_prototype + high_prototype)


def otsu(score: Floats) -> float:
    """The cut with the largest between-part variance, half way between neighbouring scores."""
    ordered = np.sort(score)
    n = len(ordered)
    if n < 2 or ordered[0] == ordered[-1]:
        return float(ordered[0]) if n else 0.0
    left = np.arange(1, n)
    sums = np.cumsum(ordered)[:-1]
    gap = sums / left - (ordered.sum() - sums) / (n - left)
    variance = left * (n - left) * gap**2
    variance[ordered[1:] == ordered[:-1]] = -1.0
    best = int(np.argmax(variance))
    return float(0.5 * (ordered[best] + ordered[best + 1]))


def gmm(score: Floats) -> float:
    """The score at which the two components of a Gaussian mixture are equally likely."""
    return fit_two_gaussians(score).boundary


def disagreement(score: Floats, first: float, second: float) -> float:
    """Share of images that two cuts label differently."""
    return float(np.mean((score > first) != (score > second))) if len(score) else 0.0
