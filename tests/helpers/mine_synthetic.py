"""Small token sets whose shortcut is known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def tokens_of(scalars: NDArray[np.float64], width: int = 4, seed: int = 0) -> NDArray[np.float64]:
    """A curve in `width` dimensions for each scalar, as a concept model's token map gives."""
    generator = np.random.default_rng(seed)
    concepts = scalars.shape[1]
    slope, offset = generator.normal(size=(2, concepts, 8))
    mix = generator.normal(size=(concepts, 8, width)) / 3
    hidden = np.tanh(scalars[:, :, None] * slope + offset)
    return np.einsum("nkh,khd->nkd", hidden, mix)


def shortcut_set(
    n: int = 600,
    *,
    agreement: float = 0.92,
    classes: int = 2,
    concepts: int = 6,
    where: int = 2,
    seed: int = 0,
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """(tokens, y, a): concept `where` shows the attribute a, which equals y for `agreement` of the
    images whatever else they show; concept 0 hints faintly at the class."""
    generator = np.random.default_rng(seed)
    y = np.arange(n) % classes
    a = np.where(generator.random(n) < agreement, y, (y + 1) % classes)
    scalars = generator.normal(size=(n, concepts))
    scalars[:, where] = 0.3 * scalars[:, where] + 2.5 * (a - (classes - 1) / 2)
    scalars[:, 0] += 0.4 * y
    return tokens_of(scalars), y.astype(np.int64), a.astype(np.int64)


def class_only_set(n: int = 1500, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """(tokens, y): two concepts show the class itself with normal spread, and nothing else does."""
    generator = np.random.default_rng(seed)
    y = np.arange(n) % 2
    scalars = generator.normal(size=(n, 6))
    scalars[:, :2] += 0.9 * (2 * y[:, None] - 1)
    return tokens_of(scalars), y.astype(np.int64)
