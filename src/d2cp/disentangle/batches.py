"""Which images a step sees: a function of (seed, stage, step), so that a resumed run repeats it."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from d2cp.disentangle.space import to_images
from d2cp.rng import permutation


class ImageStore(Protocol):
    """Decoded images by row of the table: uint8 [B,H,W,3]."""

    def __getitem__(self, rows: NDArray[np.int64], /) -> NDArray[np.uint8]: ...


def batch_positions(seed: int, stage: str, step: int, batch: int, n: int) -> NDArray[np.int64]:
    """Positions (0 … n−1) of a step's batch: epoch after epoch in a fresh order, none left out."""
    wanted = np.arange(step * batch, (step + 1) * batch, dtype=np.int64)
    epochs, places = wanted // n, wanted % n
    out = np.empty(batch, dtype=np.int64)
    for epoch in np.unique(epochs):
        here = epochs == epoch
        out[here] = permutation(seed, stage, int(epoch), n)[places[here]]
    return out


def load_images(store: ImageStore, rows: NDArray[np.int64]) -> Tensor:
    """Images in [−1, 1], [B,3,H,W]."""
    return to_images(torch.from_numpy(np.ascontiguousarray(store[rows])))
