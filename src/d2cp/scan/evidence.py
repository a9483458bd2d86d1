"""What speaks for and against a finding, as figures."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from d2cp.scan.batched import Doubles, Floats, Ints

SUREST = 0.25
"""The share of a value's images that are its sure ones."""


def certainty(scores: Floats, threshold: float | None) -> Doubles:
    """How far an image is from the nearest other value [N]."""
    if threshold is not None:
        return np.abs(scores[:, 0].astype(np.float64) - threshold)
    top = np.partition(scores.astype(np.float64), -2, axis=1)[:, -2:]
    lead: Doubles = top[:, 1] - top[:, 0]
    return lead


def sure_and_wrong(value: Ints, sure: Doubles, y: Ints) -> tuple[float, float]:
    """(ratio, standard error): how often the surest quarter is contradicted by the class, over how
    often all are.

    Errors about the class itself crowd where the score is unsure (near 0). What is only correlated
    with the class is contradicted at any score (near 1). The quarters are taken within each value.
    """
    wrong = value != y
    if not wrong.any():
        return 0.0, 0.0
    expected = observed = 0.0
    for v in np.unique(value):
        mine = np.flatnonzero(value == v)
        best = mine[np.argsort(-sure[mine], kind="stable")[: max(1, int(len(mine) * SUREST))]]
        expected += float(wrong[mine].mean()) * len(best)
        observed += float(wrong[best].sum())
    return observed / expected, max(observed, 1.0) ** 0.5 / expected


def of_the_class(error: float) -> float:
    """The same ratio where every error is about the class itself: two classes whose scores are
    normal, with one spread, and so near each other that a share `error` is on the wrong side. What
    hardly tells the classes is wrong at any certainty: the ratio grows to 1 with the error."""
    error = min(max(error, 1e-4), 0.49)
    apart = -float(ndtri(error))

    def beyond(score: float) -> float:
        return 0.5 * float(ndtr(apart - score) + ndtr(-apart - score)) - SUREST / 2

    sure = brentq(beyond, 0.0, apart + 4.0)
    return float(ndtr(-apart - sure)) / SUREST / error


def unlike_the_class(ratio: float, error: float) -> float:
    """From 0, contradicted as a reading of the class itself would be, to 1, at any certainty."""
    expected = of_the_class(error)
    return (ratio - expected) / (1 - expected)
