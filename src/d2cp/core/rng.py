"""Randomness as a function of (seed, stage, step): no global generator, no hidden state.

Whatever is drawn for a step depends on these three alone, so a run that was killed and resumed
draws what an uninterrupted run draws, whatever the number of workers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

_U64 = np.uint64
_MIX = (_U64(0xBF58476D1CE4E5B9), _U64(0x94D049BB133111EB))
_GOLDEN = _U64(0x9E3779B97F4A7C15)


def derive(seed: int, stage: str, step: int = 0) -> int:
    """A 63-bit seed for (seed, stage, step)."""
    digest = hashlib.blake2b(f"{seed}/{stage}/{step}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def numpy_generator(seed: int, stage: str, step: int = 0) -> np.random.Generator:
    return np.random.default_rng(derive(seed, stage, step))


def torch_generator(seed: int, stage: str, step: int = 0) -> torch.Generator:
    import torch

    return torch.Generator().manual_seed(derive(seed, stage, step))


@contextmanager
def seeded(seed: int, stage: str) -> Iterator[None]:
    """Initialise modules from (seed, stage), leaving the global generator as it was."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive(seed, stage))
        yield


def uniforms(
    seed: int, stage: str, step: int, index: NDArray[np.int64], count: int
) -> NDArray[np.float32]:
    """`count` uniform numbers in [0, 1) for each index: the row of an index never depends on its
    neighbours in the batch (SplitMix64 as a counter-based generator)."""
    with np.errstate(over="ignore"):
        row = _mix(np.asarray(index).astype(_U64) * _GOLDEN + _U64(derive(seed, stage, step)))
        column = np.arange(1, count + 1, dtype=_U64) * _GOLDEN
        bits = _mix(row[:, None] + column[None, :])
    return ((bits >> _U64(40)).astype(np.float32)) / np.float32(1 << 24)


def permutation(seed: int, stage: str, epoch: int, n: int) -> NDArray[np.int64]:
    """The order of one epoch."""
    return numpy_generator(seed, f"{stage}/order", epoch).permutation(n)


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    x = (x ^ (x >> _U64(30))) * _MIX[0]
    x = (x ^ (x >> _U64(27))) * _MIX[1]
    mixed: NDArray[np.uint64] = x ^ (x >> _U64(31))
    return mixed
