"""Accuracy with and against a finding, where it is known how surely an image goes against it.

An image counts on either side as surely as it is there: with sure values these are the means over
two groups of images a class.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from d2cp.core.arrays import Floats, Ints

LEAST = 1.0  # images that a side must have, else the class is one group


@dataclass(frozen=True)
class Class:
    """The images of a class, as positions among those given."""

    label: int
    rows: Ints
    against: Floats
    sides: int  # 2, or 1 where all its images are on one side


def classes_of(y: Ints, against: Floats) -> list[Class]:
    """Every class that there is."""
    found = []
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        q = against[rows]
        both = min(q.sum(), (1 - q).sum()) >= LEAST
        found.append(Class(int(label), rows, q, 2 if both else 1))
    return found


def side_weights(y: Ints, against: Floats) -> Floats:
    """[sides, n]: what each image adds to the accuracy of each side, one or two a class."""
    made = []
    for one in classes_of(y, against):
        q = one.against
        for part in (1 - q, q) if one.sides == 2 else (np.ones(len(q)),):
            whole = np.zeros(len(y))
            whole[one.rows] = part / part.sum()
            made.append(whole)
    return np.stack(made)
