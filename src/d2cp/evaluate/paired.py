"""Two classifiers on the same images: how sure is it that one's worst group is above the other's?

Groups are the images of a class with and against a finding. Images stand for others like them:
their weights are drawn again and again (a Bayesian bootstrap; half an image of every kind is added
to each group, so that a few images are never sure), and with them the gain in the worst group,
whichever that is for either classifier.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from d2cp.core.arrays import Floats, Ints
from d2cp.core.rng import numpy_generator
from d2cp.debias.sides import Class, classes_of, side_weights

DRAWS, AT_ONCE = 2000, 100
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


def paired_gain(before: Floats, after: Floats, y: Ints, against: Floats) -> Gain:
    """`before` and `after` say of each image how often it is answered right, 0 to 1; `against` how
    surely it goes against the finding."""
    generator = numpy_generator(0, "evaluate/paired-gain")
    right = np.stack([before, after], axis=1)
    classes = classes_of(y, against)
    parts = []
    for _ in range(DRAWS // AT_ONCE):  # many images and all draws would fill the memory
        drawn = [_drawn(one, right[one.rows], generator) for one in classes]
        parts.append(np.concatenate(drawn, axis=-1))
    shares = np.concatenate(parts)  # [draws, before and after, sides]
    worst = shares[:, 1].min(axis=-1) - shares[:, 0].min(axis=-1)
    low, high = np.quantile(worst, [0.05, 0.95])
    plain = side_weights(y, against) @ right
    gain, mean = plain.min(axis=0), plain.mean(axis=0)
    return Gain(
        float(gain[1] - gain[0]),
        float(low),
        float(high),
        float(mean[1] - mean[0]),
        float(np.mean(worst > 0)),
    )


def _drawn(one: Class, right: Floats, generator: np.random.Generator) -> Floats:
    """[draws, before and after, sides] of a class."""
    every = np.concatenate([right, *[KINDS] * one.sides])
    alpha = np.r_[np.ones(len(right)), np.full(len(every) - len(right), BEFOREHAND)]
    weights = generator.dirichlet(alpha, AT_ONCE)
    if one.sides == 1:
        mean: Floats = weights @ every
        return mean[..., None]
    q = np.r_[one.against, np.repeat([0.0, 1.0], len(KINDS))]
    sides = [weights * part / (weights @ part)[:, None] for part in (1 - q, q)]
    return np.stack([side @ every for side in sides], axis=-1)
