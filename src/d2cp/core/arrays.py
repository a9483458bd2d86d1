"""Array types by their content, and the two small functions that several packages need."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
Rows = Ints  # rows of a table

UNKNOWN = -1  # a label or value that is not known, everywhere


def one_hot(y: Ints, classes: int) -> Floats:
    return np.eye(classes, dtype=np.float64)[y]


def balanced_accuracy(guess: ArrayLike, truth: ArrayLike) -> float:
    """Mean over the values present in `truth` of the share of them guessed right."""
    g, t = np.asarray(guess), np.asarray(truth)
    return float(np.mean([np.mean(g[t == value] == value) for value in np.unique(t)]))
