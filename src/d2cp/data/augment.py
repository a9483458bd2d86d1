"""Batch-wise views of images. What a row gets depends on (seed, stage, epoch, index) alone, never
on the other rows of its batch."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from d2cp.core.rng import uniforms
from d2cp.data.pixels import centre_crop, to_unit


def crop_and_flip(
    index: NDArray[np.int64],
    *,
    seed: int,
    stage: str,
    epoch: int,
    scale: tuple[float, float] = (0.7, 1.0),
    ratio: tuple[float, float] = (0.75, 4 / 3),
    flip: bool = True,
) -> Tensor:
    """Affine maps [B, 2, 3] of a random resized crop: area ~ U(scale), log aspect ~ U(log ratio),
    place uniform, mirrored with probability one half. Sides longer than the image are cut to it."""
    draws = torch.from_numpy(uniforms(seed, f"{stage}/augment", epoch, index, 5)).double()
    area = scale[0] + (scale[1] - scale[0]) * draws[:, 0]
    log_ratio = math.log(ratio[0]) + (math.log(ratio[1]) - math.log(ratio[0])) * draws[:, 1]
    width = (area * log_ratio.exp()).sqrt().clamp(max=1)
    height = (area / log_ratio.exp()).sqrt().clamp(max=1)
    # In grid_sample's coordinates the image spans [-1, 1].
    centre_x = (2 * draws[:, 2] - 1) * (1 - width)
    centre_y = (2 * draws[:, 3] - 1) * (1 - height)
    mirror = torch.where(draws[:, 4] < 0.5, -1.0, 1.0) if flip else torch.ones_like(width)
    zero = torch.zeros_like(width)
    rows = (width * mirror, zero, centre_x, zero, height, centre_y)
    return torch.stack(rows, dim=1).reshape(-1, 2, 3).float()


def warp(images: Tensor, maps: Tensor, size: int) -> Tensor:
    """[B, C, H, W] of any kind → float32 [B, C, size, size], bilinear, under affine maps."""
    shape = [images.shape[0], images.shape[1], size, size]
    grid = functional.affine_grid(maps.to(images.device), shape, align_corners=False)
    return functional.grid_sample(
        to_unit(images), grid, mode="bilinear", padding_mode="border", align_corners=False
    )


def train_view(
    images: Tensor,
    index: NDArray[np.int64],
    size: int,
    *,
    seed: int,
    stage: str,
    epoch: int,
    crop: bool = True,
    flip: bool = True,
) -> Tensor:
    """A training view in [0, 1]: random resized crop and flip, or the plain centre crop where
    neither is wanted (digits: a mirrored 3 is no 3)."""
    if not crop and not flip:
        return to_unit(centre_crop(images, size))
    scale, ratio = ((0.7, 1.0), (0.75, 4 / 3)) if crop else ((1.0, 1.0), (1.0, 1.0))
    maps = crop_and_flip(
        index, seed=seed, stage=stage, epoch=epoch, scale=scale, ratio=ratio, flip=flip
    )
    return warp(images if crop else centre_crop(images, size), maps, size)
