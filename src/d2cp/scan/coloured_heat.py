"""Where in a picture coloured details lie: the pixels that stand out by what the score asks for."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from d2cp.scan.lenses.coloured import SIDES, around, standing_out
from d2cp.scan.lenses.simple import shrink


def coloured_heat(weight: Tensor, images: Tensor) -> Tensor:
    """[B, S, S] of pictures [B, 3, S, S]: slope of the score × what a pixel is beyond the window
    around it, at each of the lens's sizes; `weight` [B, D] has what each feature adds. A pixel that
    speaks against the score adds nothing."""
    heat = torch.zeros(len(images), *images.shape[2:])
    for side, own in zip(SIDES, weight.chunk(len(SIDES), dim=1), strict=True):
        level = shrink(images, side)
        whole = F.interpolate(_added(own, level)[:, None], images.shape[2:], mode="nearest")[:, 0]
        heat += whole * (level.shape[-1] / images.shape[-1]) ** 2  # a pixel there is many here
    return heat


@torch.enable_grad()
def _added(weight: Tensor, level: Tensor) -> Tensor:
    detail = (level - around(level)).detach().requires_grad_(True)
    (slope,) = torch.autograd.grad((standing_out(detail) * weight).sum(), detail)
    return (slope * detail).sum(1).detach().clamp(min=0)
