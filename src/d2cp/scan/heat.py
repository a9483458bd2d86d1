"""Where in the picture a finding is.

For patches, windows are left out; repeated details say by which pixels they match
(`d2cp.scan.patch_heat`). For the other lenses the map is, to
first order, how much each place pushes the score: slope × (picture - what would be there instead),
summed over the channels and smoothed. What stands in for the cue is the lens's own: a blurred
picture for sharpness, the picture in grey for saturation, in grey light for tint, the picture's
mean colour for a border, the data set's mean colour or mean picture for colour and layout. Lenses
that look at the file or at a column have no place in it.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from d2cp.scan.bank import Bank
from d2cp.scan.batched import Floats
from d2cp.scan.finding import Reader
from d2cp.scan.lenses.simple import luma
from d2cp.scan.lenses.tint import without_tint
from d2cp.scan.patch_heat import PATCH_LENSES, patch_heat, smoothing
from d2cp.scan.transplant import read_images

BLUR = 1 / 16
"""Side of the blur that takes sharpness away, as a share of the picture's."""


def heat_maps(
    bank: Bank, reader: Reader, lens: str, images: Tensor, sides: list[int], usual: Tensor
) -> Floats:
    """[B, S, S] from 0 to 1: what pushes picture i towards value `sides[i]`. `usual` [3, S, S] is
    the data set's mean picture."""
    if lens in PATCH_LENSES:
        heat = patch_heat(bank, reader, images, sides)
    else:
        heat = _push(bank, reader, lens, images, sides, usual)
    top = heat.flatten(1).amax(1).clamp(min=1e-12)
    return (heat / top[:, None, None]).numpy()


def _push(
    bank: Bank, reader: Reader, lens: str, images: Tensor, sides: list[int], usual: Tensor
) -> Tensor:
    images = images.clone().requires_grad_(True)
    scores = read_images(bank, reader, images, torch.from_numpy(reader.intercept)[None])
    (slope,) = torch.autograd.grad(towards(scores, sides).sum(), images)
    slope = slope.nan_to_num(0, 0, 0)  # a flat strip's spread has no slope
    with torch.no_grad():
        push = (slope * (images - instead(lens, images, usual))).sum(1, keepdim=True)
        width = smoothing(images.shape[-1])
        for _ in range(2):
            push = F.avg_pool2d(push, width, 1, width // 2, count_include_pad=False)
        return push[:, 0].clamp(min=0)


def towards(scores: Tensor, sides: list[int]) -> Tensor:
    """[B]: what speaks for each picture's side."""
    side = torch.tensor(sides)
    if scores.shape[1] == 1:
        return scores[:, 0] * (2 * side - 1)
    return scores.gather(1, side[:, None])[:, 0]


def instead(lens: str, images: Tensor, usual: Tensor) -> Tensor:
    """The pictures without what the lens looks at."""
    if lens == "layout":
        return usual.expand_as(images)
    if lens == "colour":
        return usual.mean((1, 2))[None, :, None, None].expand_as(images)
    if lens == "saturation":
        return luma(images)[:, None].expand_as(images)
    if lens == "tint":
        return without_tint(images)
    if lens == "border":
        return images.mean((2, 3), keepdim=True).expand_as(images)
    width = _odd(images.shape[-1] * BLUR)
    return F.avg_pool2d(images, width, 1, width // 2, count_include_pad=False)


def _odd(x: float) -> int:
    return max(3, 2 * round((x - 1) / 2) + 1)
