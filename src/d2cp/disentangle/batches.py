"""Which images a step sees: a function of (seed, stage, step), so that a resumed run repeats it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from d2cp.core.rng import numpy_generator, permutation


def batch_positions(seed: int, stage: str, step: int, batch: int, n: int) -> NDArray[np.int64]:
    """Positions (0 … n−1) of a step's batch: epoch after epoch in a fresh order, none left out."""
    wanted = np.arange(step * batch, (step + 1) * batch, dtype=np.int64)
    epochs, places = wanted // n, wanted % n
    out = np.empty(batch, dtype=np.int64)
    for epoch in np.unique(epochs):
        here = epochs == epoch
        out[here] = permutation(seed, stage, int(epoch), n)[places[here]]
    return out


def balancing_weights(cells: NDArray[np.int64], most: float) -> NDArray[np.float64]:
    """How much more often than evenly each image is drawn so that all cells come alike, but none
    of its images more than `most` times as often. Their mean is 1."""
    counts = np.bincount(cells)
    factor = len(cells) / ((counts > 0).sum() * np.maximum(counts, 1))
    weights = np.minimum(factor, most)[cells]
    return np.asarray(weights / weights.mean(), dtype=np.float64)


def weighted_positions(
    seed: int, stage: str, step: int, batch: int, weights: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Positions of a step's batch, drawn with these weights."""
    edges = np.cumsum(weights)
    drawn = numpy_generator(seed, stage, step).random(batch) * edges[-1]
    found = np.searchsorted(edges, drawn, side="right")
    return np.asarray(found.clip(max=len(weights) - 1), dtype=np.int64)
