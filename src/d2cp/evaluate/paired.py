"""Two classifiers on the same images: how sure is it that one's worst group is above the other's?

Images of a group stand for others like them. Their weights are drawn again and again (a Bayesian
bootstrap; half an image of every kind is added to a group, so that a few images are never sure),
and with them the gain in the worst group, whichever that is for either classifier.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from d2cp.core.arrays import Floats, Ints
from d2cp.core.rng import numpy_generator

DRAWS = 2000
KINDS = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=np.float64)  # right before, right after
BEFOREHAND = 0.5  # images of each kind


@dataclass(frozen=True)
class Gain:
    """Of the second classifier over the first; `low` and `high` hold 90% of the draws."""

    worst_group: float
    low: float
    high: float
    mean: float  # over groups
    surely: float  # share of the draws with a gain in the worst group

    def __str__(self) -> str:
        low, high = 100 * self.low, 100 * self.high
        return f"{100 * self.worst_group:+.1f} points, 90% interval {low:+.1f} to {high:+.1f}"


def paired_gain(before: Floats, after: Floats, groups: Ints) -> Gain:
    """`before` and `after` say of each image how often it is answered right, 0 to 1."""
    names = np.unique(groups)
    generator = numpy_generator(0, "evaluate/paired-gain")
    plain, drawn = np.empty((2, len(names))), np.empty((2, DRAWS, len(names)))
    for k, name in enumerate(names):
        pairs = np.stack([before[groups == name], after[groups == name]], axis=1)
        plain[:, k] = pairs.mean(axis=0)
        every = np.concatenate([pairs, KINDS])
        alpha = np.r_[np.ones(len(pairs)), np.full(len(KINDS), BEFOREHAND)]
        drawn[:, :, k] = (generator.dirichlet(alpha, DRAWS) @ every).T
    worst = drawn[1].min(axis=1) - drawn[0].min(axis=1)
    low, high = np.quantile(worst, [0.05, 0.95])
    return Gain(
        float(plain[1].min() - plain[0].min()),
        float(low),
        float(high),
        float(plain[1].mean() - plain[0].mean()),
        float(np.mean(worst > 0)),
    )
