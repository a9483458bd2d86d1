"""What speaks for and against a finding, as figures."""

from __future__ import annotations

import numpy as np

from d2cp.scan.batched import Doubles, Floats, Ints


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
        best = mine[np.argsort(-sure[mine], kind="stable")[: max(1, len(mine) // 4)]]
        expected += float(wrong[mine].mean()) * len(best)
        observed += float(wrong[best].sum())
    return observed / expected, max(observed, 1.0) ** 0.5 / expected
