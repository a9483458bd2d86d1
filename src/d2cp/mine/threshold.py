"""Where to cut the spurious score in two."""

from __future__ import annotations

import numpy as np

from d2cp.core.arrays import Bools, Floats
from d2cp.mine.mixture import fit_two_gaussians
from d2cp.mine.otsu import otsu as otsu


def midpoint(low_prototype: float, high_prototype: float) -> float:
    """Half way between the scores of the two classes' prototypes."""
    return 0.5 * (low_prototype + high_prototype)


def youden(score: Floats, positive: Bools) -> float:
    """The middle of the cuts whose J = P(u > t | y=1) − P(u > t | y=0) is the largest, or short of
    it by no more than its standard error. Of cuts that rounding alone tells apart, the lowest
    counts as the largest.

    Where u tells nothing about y once the attribute a is known, J for y is J for a times a
    constant, so that the best cut for the label is the best cut for the attribute.
    """
    order = np.argsort(score, kind="stable")
    ordered, flag = score[order], positive[order]
    if len(score) < 2 or ordered[0] == ordered[-1] or flag.all() or not flag.any():
        return float(ordered.mean()) if len(score) else 0.0
    below = np.cumsum(~flag)[:-1] / (~flag).sum()
    above = 1 - np.cumsum(flag)[:-1] / flag.sum()
    j = np.where(ordered[1:] > ordered[:-1], below + above, -np.inf)
    best = int(np.argmax(j >= j.max() - 1e-9))
    variance = below[best] * (1 - below[best]) / (~flag).sum()
    variance += above[best] * (1 - above[best]) / flag.sum()
    short = np.flatnonzero(np.isfinite(j) & (j < j[best] - np.sqrt(variance)))
    low = int(short[short < best].max(initial=-1)) + 1
    high = int(short[short > best].min(initial=len(j))) - 1
    return float(0.5 * (ordered[low] + ordered[high + 1]))


def gmm(score: Floats) -> float:
    """The score at which the two components of a Gaussian mixture are equally likely."""
    return fit_two_gaussians(score).boundary


def disagreement(score: Floats, first: float, second: float) -> float:
    """Share of images that two cuts label differently."""
    return float(np.mean((score > first) != (score > second))) if len(score) else 0.0
