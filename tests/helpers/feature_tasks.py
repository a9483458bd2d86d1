"""Small tasks on made-up features: a weak core direction, a strong spurious one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from d2cp.compare.task import Pseudo, Task
from d2cp.compare.tiers import FeatureSpace
from d2cp.config.debias import DebiasConfig


def blobs(y: np.ndarray, a: np.ndarray, width: int = 12, seed: int = 0) -> torch.Tensor:
    """Features whose first axes tell the class (weakly) and later ones the attribute (strongly)."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(len(y), width))
    x[np.arange(len(y)), y] += 2.5
    x[np.arange(len(y)), width - 1 - a] += 5.0
    return torch.from_numpy(x).float()


@pytest.fixture
def make_config():
    return small_config


def small_config(**changes: object) -> DebiasConfig:
    values: dict[str, object] = {
        "batch_size": 32,
        "lr": 0.05,
        "image_size": 16,
        "resize": 16,
        "prompt_length": 2,
        "prompt_dropout": 0.0,
        "augment": False,
        "flip": False,
    }
    return DebiasConfig(**(values | changes))  # type: ignore[arg-type]


@pytest.fixture
def make_task():
    def make(
        *,
        groups: np.ndarray,
        values: int,
        classes: int,
        budget: int = 640,
        seed: int = 0,
        **changes: object,
    ) -> Task:
        y, a = groups // values, groups % values
        n = len(y)
        rows = np.random.default_rng(0).permutation(n)
        train, val = np.sort(rows[: n * 3 // 4]), np.sort(rows[n * 3 // 4 :])
        if budget == 3200:  # PDE's test wants every row in training
            train = np.arange(n)
        settings = small_config()
        values: dict[str, object] = {
            "y": y,
            "train": train,
            "val": val,
            "classes": classes,
            "seed": seed,
            "budget": budget,
            "config": settings,
            "space": FeatureSpace(blobs(y, a), settings, train=train),
            "attribute": a[train],
            "values": values,
            "mined": Pseudo(a, values, a.astype(float), (a != y % values) * 1, a * 0),
        }
        return Task(**(values | changes))  # type: ignore[arg-type]

    return make
