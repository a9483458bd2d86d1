"""The concept encoder f_C: an image to K scalars. Both forms that EncDiff published."""

from __future__ import annotations

import math
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from d2cp.disentangle.batch_norm import BatchNorm2d


def halvings(size: int) -> int:
    """Stride-2 convolutions: four at 64 pixels, fewer on small images so that a grid is left."""
    return min(4, max(1, round(math.log2(size / 4))))


def _grid(size: int) -> int:
    for _ in range(halvings(size)):
        size //= 2
    return size


class PaperEncoder(nn.Module):
    """conv7 then conv4-stride-2 with ReLU, then two hidden layers (EncDiff, appendix)."""

    def __init__(self, size: int, concepts: int, width: int, hidden: int) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, width, 7, padding=3), nn.ReLU()]
        channels = width
        for i in range(halvings(size)):
            out = width * (2 if i == 0 else 4)
            layers += [nn.Conv2d(channels, out, 4, stride=2, padding=1), nn.ReLU()]
            channels = out
        flat = channels * _grid(size) ** 2
        self.features = nn.Sequential(*layers)
        self.head = nn.Sequential(
            nn.Flatten(),
            nn.Linear(flat, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, concepts),
        )

    def forward(self, images: Tensor) -> Tensor:
        return cast(Tensor, self.head(self.features(images)))


class _Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.block = nn.Sequential(
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 1),
            BatchNorm2d(width),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + cast(Tensor, self.block(x))


class CodeEncoder(nn.Module):
    """conv4-stride-2 with batch normalisation, two residual blocks, one linear layer."""

    def __init__(self, size: int, concepts: int, width: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = 3
        for _ in range(halvings(size)):
            layers += [
                nn.Conv2d(channels, width, 4, stride=2, padding=1),
                BatchNorm2d(width),
                nn.ReLU(),
            ]
            channels = width
        self.features = nn.Sequential(*layers, _Residual(width), _Residual(width))
        self.head = nn.Linear(width * _grid(size) ** 2, concepts)

    def forward(self, images: Tensor) -> Tensor:
        x = F.relu(self.features(images))
        return cast(Tensor, self.head(torch.flatten(x, 1)))


def build_encoder(kind: str, size: int, concepts: int, width: int, hidden: int) -> nn.Module:
    if kind == "paper":
        return PaperEncoder(size, concepts, width, hidden)
    return CodeEncoder(size, concepts, width)
