"""Concepts that see what a lazy classifier sees, however few pixels it covers (beyond the paper).

A generative bottleneck spends its scalars on what moves most pixels; a small mark is not among
that. Some small networks, the guide, learn the labels by the easy way: generalised cross-entropy
keeps to what most images of a class agree on. Each training image belongs to one fold and its
scalar comes from the network that never saw its label (cross-fitting, as in XRM), so that an image
whose label contradicts the shortcut is not memorised. The denoiser is conditioned on these scalars
too and learns to draw what they mean.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from d2cp.config.disentangle import DisentangleConfig
from d2cp.disentangle.batch_norm import BatchNorm2d


def generalised_cross_entropy(logits: Tensor, labels: Tensor, q: float) -> Tensor:
    """(1 − p_y^q) / q per image; its limit at q = 0 is the cross-entropy."""
    log_p = F.log_softmax(logits, dim=1).gather(1, labels[:, None]).squeeze(1)
    if q == 0:
        return -log_p
    return (1 - torch.exp(q * log_p)) / q


class LazyNet(nn.Module):
    """A small convolutional network. The maximum over places sees a mark wherever it is, two
    channels of coordinates let it see where."""

    def __init__(self, classes: int, width: int) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(5, width, 5, stride=2, padding=2),
            BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            BatchNorm2d(2 * width),
            nn.ReLU(),
            nn.Conv2d(2 * width, 4 * width, 3, stride=2, padding=1),
            BatchNorm2d(4 * width),
            nn.ReLU(),
        )
        self.head = nn.Linear(8 * width, classes)

    def forward(self, images: Tensor) -> Tensor:
        x = self.features(torch.cat([images, _coordinates(images)], dim=1))
        pooled = torch.cat([x.mean((2, 3)), x.amax((2, 3))], dim=1)
        return cast(Tensor, self.head(pooled))


def _coordinates(images: Tensor) -> Tensor:
    """Row and column of each place, from −1 to 1: [B,2,H,W]."""
    rows, columns = (torch.linspace(-1, 1, n, device=images.device) for n in images.shape[-2:])
    grid = torch.stack(torch.meshgrid(rows, columns, indexing="ij"))
    return grid.expand(len(images), -1, -1, -1)


class Guide(nn.Module):
    """The trained lazy networks, the fold of each training row, and the scalars' scale."""

    rows: Tensor
    folds: Tensor
    centre: Tensor
    scale: Tensor
    basis: Tensor

    def __init__(self, classes: int, concepts: int, folds: int, width: int, n: int) -> None:
        super().__init__()
        self.classes, self.concepts = classes, concepts
        self.nets = nn.ModuleList(LazyNet(classes, width) for _ in range(folds))
        self.register_buffer("rows", torch.zeros(n, dtype=torch.int64))
        self.register_buffer("folds", torch.zeros(n, dtype=torch.int64))
        self.register_buffer("centre", torch.zeros(folds, classes))
        self.register_buffer("scale", torch.ones(folds))
        self.register_buffer("basis", torch.zeros(classes, concepts))

    @classmethod
    def sized(cls, config: DisentangleConfig, classes: int, images: int) -> Guide:
        """An untrained guide: one scalar fewer than there are classes, at most half of them all."""
        concepts = min(config.guide.concepts, classes - 1, config.concepts // 2)
        return cls(classes, concepts, config.guide.folds, config.guide.width, images)

    def fold_of(self, rows: NDArray[np.int64]) -> Tensor:
        """The fold of each training row; −1 for a row the guide never saw."""
        seen = self.rows.cpu()
        known = torch.full((1 + max(int(seen.max()), rows.max(initial=0)),), -1)
        known[seen] = self.folds.cpu()
        return known[torch.from_numpy(rows)]

    def logits(self, images: Tensor) -> Tensor:
        """Each network's logits [F,B,C], centred over the classes."""
        each = torch.stack([net(images) for net in self.nets])
        return each - each.mean(-1, keepdim=True)

    def scalars(self, images: Tensor, rows: NDArray[np.int64]) -> Tensor:
        """[B,G]. A training row's scalar comes from the one network that did not see its label;
        any other row's is the mean over the networks."""
        return self.scalars_from(self.logits(images), self.fold_of(rows).to(images.device))

    def scalars_from(self, logits: Tensor, fold: Tensor) -> Tensor:
        """The same from the networks' logits [F,B,C] and the images' folds [B]."""
        aligned = (logits - self.centre[:, None]) / self.scale[:, None, None]
        return cross_fitted(aligned @ self.basis, fold)


def cross_fitted(each: Tensor, fold: Tensor) -> Tensor:
    """[F,B,G] to [B,G]: the held-out network's value, or the mean where the fold is −1."""
    held_out = each[fold.clamp(min=0), torch.arange(len(fold), device=each.device)]
    return torch.where((fold >= 0)[:, None], held_out, each.mean(0))
