"""Tiny images with a known shortcut: y is the side of a faint bar, a the colour of the ground."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from d2cp.config.disentangle import DisentangleConfig
from d2cp.config.strict import changed


@dataclass(frozen=True)
class Toy:
    images: NDArray[np.uint8]
    rows: NDArray[np.int64]
    y: NDArray[np.int64]
    a: NDArray[np.int64]


@pytest.fixture(scope="package", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def toy() -> Toy:
    draw = np.random.default_rng(0)
    n = 240
    y = draw.integers(0, 2, n)
    a = np.where(draw.random(n) < 0.9, y, 1 - y)
    images = draw.integers(0, 40, (n, 16, 16, 3)).astype(np.uint8)
    images[np.arange(n), :, :, a] += 120
    for i in range(n):
        column = draw.integers(1, 6) + 8 * y[i]
        images[i, 6:10, column : column + 2] += 25
    return Toy(images, np.arange(n, dtype=np.int64), y, a)


@pytest.fixture
def tiny() -> DisentangleConfig:
    return changed(
        DisentangleConfig(),
        {
            "size": 16,
            "concepts": 4,
            "encoder.width": 4,
            "encoder.hidden": 16,
            "tokens.hidden": (8,),
            "tokens.dim": 8,
            "unet.channels": (16,),
            "unet.attention": (0,),
            "unet.heads": 2,
            "steps": 12,
            "batch": 8,
            "warmup": 2,
            "guide.steps": 10,
            "guide.width": 4,
            "guide.batch": 16,
            "ddim_steps": 4,
        },
    )
