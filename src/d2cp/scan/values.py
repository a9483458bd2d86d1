"""From scores to a pseudo attribute: where to cut, and how far it agrees with the class."""

from __future__ import annotations

import numpy as np

from d2cp.mine.threshold import youden
from d2cp.scan.batched import Doubles, Floats, Ints


def cut(held_out: Floats, y: Ints) -> float | None:
    """Youden's cut in the score of the rows learnt from; None with more than two classes, where
    the value is the class that the score speaks for."""
    if held_out.shape[1] > 1:
        return None
    return youden(held_out[:, 0].astype(np.float64), y == 1)


def values_of(scores: Floats, threshold: float | None) -> Ints:
    if threshold is None:
        return np.asarray(scores.argmax(axis=1), dtype=np.int64)
    return np.asarray(scores[:, 0] > threshold, dtype=np.int64)


def score_of(scores: Floats, value: Ints) -> Doubles:
    """One number an image: with two classes the score itself, else that of its value."""
    if scores.shape[1] == 1:
        return scores[:, 0].astype(np.float64)
    return scores[np.arange(len(scores)), value].astype(np.float64)


def agreement(value: Ints, y: Ints, weight: Doubles | None = None) -> float:
    """Balanced accuracy of the value for the class, the images weighted within each class."""
    weight = np.ones(len(y)) if weight is None else weight
    right = weight * (value == y)
    return float(np.mean([right[y == c].sum() / weight[y == c].sum() for c in np.unique(y)]))


def beyond_chance(agreeing: float, classes: int) -> float:
    """0 at chance, 1 where value and class are the same: with two classes Youden's J."""
    return max(0.0, (agreeing - 1 / classes) / (1 - 1 / classes))
