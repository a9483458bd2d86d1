"""Parts in a colour of their own: stickers, strokes of a pen, dates, coloured labels.

A pixel is held against the mean of the window around it, so that neither the light nor large areas
of colour count. What stands out is read along five axes of colour, either way, at three sizes: how
far the farthest pixels do, against how far pixels of this picture do usually. Colours that are
stronger or weaker all over a picture change nothing in that.
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from d2cp.scan.lenses.simple import shrink
from d2cp.scan.lenses.windows import window_means

SIDES = (144, 72, 36)
WINDOW = 7
"""Side of the window that a pixel is held against, at each of SIDES."""
LARGE = 1 / 5
"""Side of the windows over which a picture is levelled, as a share of its own: wider than what
counts as a detail at the coarsest of SIDES."""
TOGETHER = 144 * 144
"""Pixels read together: what is computed of them stays in a core's own cache."""
AXES = 4
HUES = (
    *("bright", "blue", "purple", "red", "orange"),
    *("dark", "yellow", "green", "turquoise", "sky-blue"),
)
"""What stands out either way along the axes."""
FLOOR = 0.003
"""What stands out less than this is noise."""
LIGHT = 0.5
"""What a difference of brightness counts beside one of colour: there is more of it everywhere."""
YCC = ((0.299, 0.587, 0.114), (-0.1687, -0.3313, 0.5), (0.5, -0.4187, -0.0813))
"""Brightness, and blue and red against it."""


def coloured(images: Tensor) -> Tensor:
    """Features [B, D] of images [B, 3, S, S] in [0, 1], all of them logarithms."""
    together = max(1, TOGETHER // images.shape[-1] ** 2)
    return torch.cat([_read(part) for part in torch.split(images, together)])


def _read(images: Tensor) -> Tensor:
    levels = [shrink(images, side) for side in SIDES]
    return torch.cat([standing_out(level - around(level)) for level in levels], dim=1)


def around(pictures: Tensor, window: int = WINDOW) -> Tensor:
    """Mean of the window around each pixel of [..., 3, S, S]; a picture goes on beyond its edge as
    it ends there."""
    half = window // 2
    wide = F.pad(pictures, (half, half, half, half), mode="replicate")
    return window_means(wide, window)


def give_detail(images: Tensor, donors: Tensor) -> Tensor:
    """What stands out in the donors, on what the images are at large."""
    window = 2 * round(images.shape[-1] * LARGE / 2) + 1
    return around(images, window) + donors - around(donors, window)


@lru_cache(maxsize=1)
def axes() -> Tensor:
    """Brightness, and AXES axes at no change of brightness: [1 + AXES, 3] of red, green, blue."""
    turns = [math.pi * k / AXES for k in range(AXES)]
    rows = [(LIGHT, 0.0, 0.0), *((0.0, math.cos(a), math.sin(a)) for a in turns)]
    return torch.tensor(rows) @ torch.tensor(YCC)


def hues(images: Tensor) -> dict[str, Tensor]:
    """How far the farthest pixels of each of HUES stand out, over all sizes: [B] each."""
    farthest = coloured(images).reshape(len(images), len(SIDES), 2, len(HUES))[:, :, 0].mean(1)
    return dict(zip(HUES, farthest.unbind(1), strict=True))


def standing_out(detail: Tensor) -> Tensor:
    """Of what the pixels [B, 3, S, S] are beyond their windows, for either way along each axis: the
    farthest, and the mean fourth power, which the far ones decide."""
    far = axes() @ detail.flatten(2)
    square = far.square()
    fourth = square.square()
    up = (fourth * (far > 0)).mean(2)
    fourths = torch.cat([up, (fourth.mean(2) - up).clamp(min=0)], dim=1)
    farthest = torch.cat([far.amax(2), -far.amin(2)], dim=1).clamp(min=0)
    usual = (square.mean(2) + FLOOR**2).sqrt().repeat(1, 2)
    found = [(farthest + FLOOR) / usual, (fourths + FLOOR**4) ** 0.25 / usual]
    return torch.log(torch.cat(found, dim=1))
