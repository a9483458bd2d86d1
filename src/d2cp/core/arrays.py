"""Types shared by the mining functions: NumPy, float64, one row an image."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def softmax(logits: Floats) -> Floats:
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    result: Floats = shifted / shifted.sum(axis=-1, keepdims=True)
    return result


def one_hot(y: Ints, classes: int) -> Floats:
    return np.eye(classes, dtype=np.float64)[y]
