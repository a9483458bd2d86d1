"""From stored bytes to what a network reads: the one path of every stage and of serving.

Bytes [B, H, W, 3] → channels first → floats in [0, 1] → the units a backbone was trained on; the
concept model reads [-1, 1] instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class Stored(Protocol):
    """Decoded images by row of the table: uint8 [B, H, W, 3]."""

    def __getitem__(self, rows: NDArray[np.int64], /) -> NDArray[np.uint8]: ...


def channels_first(pixels: NDArray[np.uint8]) -> Tensor:
    """uint8 [B, H, W, 3] → uint8 [B, 3, H, W]."""
    return torch.from_numpy(np.ascontiguousarray(pixels)).permute(0, 3, 1, 2).contiguous()


def to_unit(images: Tensor) -> Tensor:
    """uint8 → float32 in [0, 1]; floats pass through."""
    return images if images.is_floating_point() else images.to(torch.float32) / 255


def to_signed(images: Tensor) -> Tensor:
    """uint8 → float32 in [-1, 1]."""
    return images.to(torch.float32).div(127.5).sub(1)


def to_bytes(images: Tensor) -> Tensor:
    """Floats [B, 3, H, W] in [-1, 1] → uint8 [B, H, W, 3]."""
    scaled = images.clamp(-1, 1).add(1).mul(127.5).round()
    return scaled.to(torch.uint8).permute(0, 2, 3, 1).contiguous()


def centre_crop(images: Tensor, size: int) -> Tensor:
    """The middle size × size of [B, C, H, W], pixel for pixel."""
    height, width = images.shape[-2:]
    if size > min(height, width):
        raise ValueError(f"no centre crop of {size} from {height}×{width}")
    top, left = (height - size) // 2, (width - size) // 2
    return images[..., top : top + size, left : left + size]


def centre_view(pixels: NDArray[np.uint8], size: int) -> Tensor:
    """Centre crops in [0, 1], as every image is scored and served."""
    return to_unit(centre_crop(channels_first(pixels), size))


def signed_view(store: Stored, rows: NDArray[np.int64]) -> Tensor:
    """Whole images in [-1, 1], as the concept model reads them."""
    return to_signed(channels_first(store[rows]))


def standardised(images: Tensor, mean: Sequence[float], std: Sequence[float]) -> Tensor:
    """Images in [0, 1], [B, 3, H, W], in the units a backbone was trained on."""
    centre = torch.tensor(mean, device=images.device).view(3, 1, 1)
    return (images - centre) / torch.tensor(std, device=images.device).view(3, 1, 1)
