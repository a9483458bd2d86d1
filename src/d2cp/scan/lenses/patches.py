"""Local patterns and texture: small patches compared with a dictionary learnt without labels.

Patches are freed of brightness and contrast, whitened, and compared with the centres of k-means
(Coates, Lee, Ng 2011). The largest response over all places says "this is somewhere in the
picture", the mean response says "the picture is made of this".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from d2cp.core.rng import numpy_generator
from d2cp.scan.batched import Arrays, Floats
from d2cp.scan.lenses.windows import window_means

COMPONENTS = 64
"""Principal components of a patch that are kept: the rest is noise that whitening would raise."""

STRIDE = 2
"""Patches are taken at every second row and column."""


@dataclass(frozen=True)
class Dictionary:
    """`basis` [M, 3, p, p] makes whitened patches, `centres` [K, M] are what they are compared
    with."""

    basis: Tensor
    offset: Tensor
    centres: Tensor

    @property
    def side(self) -> int:
        return int(self.basis.shape[-1])

    def responses(self, images: Tensor) -> Tensor:
        """Cosine of whitened patches with every centre, at every second place: [B, K, h, w]."""
        white = F.conv2d(images, self.basis, stride=STRIDE) / _contrast(images, self.side)
        white = white - self.offset[:, None, None]
        white = white / white.square().sum(1, keepdim=True).sqrt().clamp(min=1e-3)
        cosines = self.centres @ white.flatten(2)
        return cosines.reshape(*cosines.shape[:2], *white.shape[2:])

    def arrays(self) -> Arrays:
        return {
            "basis": self.basis.numpy(),
            "offset": self.offset.numpy(),
            "centres": self.centres.numpy(),
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Dictionary:
        return cls(*(torch.from_numpy(arrays[name]) for name in ("basis", "offset", "centres")))


def learn_dictionary(
    images: Tensor, side: int, centres: int, seed: int, *, patches: int = 40_000
) -> Dictionary:
    """From random patches of `images` [N, 3, S, S] in [0, 1]."""
    draw = numpy_generator(seed, f"scan/patches/{side}")
    drawn = _random_patches(images, side, patches, draw)
    flat = drawn.reshape(len(drawn), -1)
    centred = flat - flat.mean(1, keepdim=True)
    normal = centred / torch.sqrt(centred.pow(2).mean(1, keepdim=True) + EPSILON)
    offset = normal.mean(0)
    covariance = (normal - offset).T @ (normal - offset) / len(normal)
    values, vectors = torch.linalg.eigh(covariance.double())
    keep = min(COMPONENTS, int((values > 1e-4 * values[-1]).sum()))
    top = vectors[:, -keep:].flip(1) / torch.sqrt(values[-keep:].flip(0) + 0.01 * values.mean())
    white = (normal - offset) @ top.float()
    found = spherical_kmeans(white.numpy(), centres, draw)
    # Taking a patch's mean away is linear too: it is folded into the filters.
    basis = top.float() - top.float().mean(0, keepdim=True)
    return Dictionary(
        basis.T.reshape(-1, 3, side, side).contiguous(),
        offset @ top.float(),
        torch.from_numpy(found),
    )


EPSILON = 1e-3
"""Variance that counts as contrast: flat patches are not blown up to patterns."""


def _contrast(images: Tensor, side: int) -> Tensor:
    """Standard deviation of each patch over its pixels and channels: [B, 1, h, w]."""
    moments = torch.stack([images.mean(1), images.square().mean(1)], dim=1)
    mean, square = window_means(moments, side, STRIDE)[:, :, None].unbind(1)
    return torch.sqrt((square - mean * mean).clamp(min=0) + EPSILON)


def _random_patches(images: Tensor, side: int, n: int, draw: np.random.Generator) -> Tensor:
    count, _, height, width = images.shape
    which = draw.integers(count, size=n)
    top = draw.integers(height - side + 1, size=n)
    left = draw.integers(width - side + 1, size=n)
    windows = images.unfold(2, side, 1).unfold(3, side, 1)
    return windows[which, :, top, left]


def spherical_kmeans(
    x: NDArray[np.float32], k: int, draw: np.random.Generator, rounds: int = 12
) -> Floats:
    """k directions [k, D]; each point goes to the centre of the largest cosine."""
    x = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-6)
    centres = x[draw.choice(len(x), size=k, replace=len(x) < k)]
    for _ in range(rounds):
        similarity = x @ centres.T
        nearest = similarity.argmax(axis=1)
        sums = np.zeros_like(centres)
        np.add.at(sums, nearest, x)
        empty = np.bincount(nearest, minlength=k) == 0
        sums[empty] = x[draw.integers(len(x), size=int(empty.sum()))]
        centres = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-6)
    return centres.astype(np.float32)
