"""Initial weights as a function of (seed, stage)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from d2cp.rng import derive


@contextmanager
def seeded(seed: int, stage: str) -> Iterator[None]:
    """Initialise modules from (seed, stage), leaving the global generator as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive(seed, stage))
        yield
