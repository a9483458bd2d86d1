"""How much a finding tells beyond the findings before it."""

from __future__ import annotations

import numpy as np

from d2cp.scan.batched import Floats, Ints
from d2cp.scan.targets import explained
from d2cp.scan.values import agreement, beyond_chance

FLOOR = 0.04
"""No image weighs more than one whose class the earlier findings give this chance, shared among the
classes: with many of them every single one is expected less."""


def told_beyond(value: Ints, y: Ints, classes: int, earlier: list[Floats]) -> float:
    """Agreement beyond chance once the earlier findings' scores [N, T] are balanced away.

    An image weighs as much as its class is unexpected after them, 1 / P(class | earlier scores):
    among images so weighted, the earlier scores are spread alike in every class. A cue of its own
    agrees with the class there as before, another reading of an earlier one does not.
    """
    if not earlier:
        return beyond_chance(agreement(value, y), classes)
    probability = explained(y, classes, earlier)
    if classes == 2:
        own = np.where(y == 1, probability[:, 0], 1 - probability[:, 0])
    else:
        own = probability[np.arange(len(y)), y]
    return beyond_chance(agreement(value, y, 1 / np.maximum(own, FLOOR / classes)), classes)
