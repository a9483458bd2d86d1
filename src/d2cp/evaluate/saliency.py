"""Saliency as a number: how much of a map lies inside a mask."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

STROKE = 64  # of 255: from here on a pixel of a digit on black belongs to its stroke


def mass_inside(heat: Tensor, mask: Tensor) -> Tensor:
    """Share [B] of each map's mass inside its mask; NaN for a map that is zero everywhere.

    `heat` [B, h, w] is not negative, `mask` [B, H, W] is True inside. A patch's mass is spread
    evenly over the pixels it covers.
    """
    height, width = heat.shape[1:]
    covered = adaptive_avg_pool2d(mask.to(heat.dtype)[:, None], (height, width))[:, 0]
    return (heat * covered).sum(dim=(1, 2)) / heat.sum(dim=(1, 2))


def area(mask: Tensor) -> Tensor:
    """Share [B] of the image that a mask covers: what a map without any preference would have."""
    return mask.double().mean(dim=(1, 2))


def stroke(images: Tensor) -> Tensor:
    """Mask [B, H, W] of a digit drawn in any colour on black; images [B, 3, H, W] in [0, 1]."""
    return images.amax(dim=1) >= STROKE / 255
