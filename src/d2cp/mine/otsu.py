"""The cut of scores in two with the largest between-part variance (the best two-means split)."""

from __future__ import annotations

import numpy as np

from d2cp.core.arrays import Floats


def otsu(score: Floats) -> float:
    """Half way between neighbouring scores; sorted prefix sums give it exactly. Of cuts that
    rounding alone tells apart, as in symmetric scores, the lowest."""
    ordered = np.sort(score)
    n = len(ordered)
    if n < 2 or ordered[0] == ordered[-1]:
        return float(ordered[0]) if n else 0.0
    left = np.arange(1, n)
    sums = np.cumsum(ordered)[:-1]
    gap = sums / left - (ordered.sum() - sums) / (n - left)
    between = left * (n - left) * gap**2
    between[ordered[1:] == ordered[:-1]] = -1.0
    best = int(np.argmax(between >= (1 - 1e-9) * between.max()))
    return float(0.5 * (ordered[best] + ordered[best + 1]))
