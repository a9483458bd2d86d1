"""Handwriting-like distortion and colouring of glyphs: tensors and uniform draws in, images out.

The geometry is a smooth warp of the distance field; the pen is drawn afterwards, so its width does
not depend on the type face. `strength` in [0, 1] is the curriculum: 0 is a plain centred glyph.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from tools.pretrain_backbone.glyphs import BOX, SIDE
from tools.pretrain_backbone.strokes import UNITS_PER_PIXEL

IMAGE = 28
GLYPH = 20
"""Side of the box that a glyph fills in an image, before distortion."""
_OVERSAMPLE = 2


def _between(u: Tensor, low: float, high: float) -> Tensor:
    return low + (high - low) * u


def affine(u: Tensor, strength: float) -> Tensor:
    """[B, 2, 3] output-to-input maps from u [B, 7]: scale, aspect, slant, turn, shift."""
    s = strength
    scale = torch.exp(_between(u[:, 0], -0.30 * s, 0.15 * s))
    aspect = torch.exp(_between(u[:, 1], -0.35 * s, 0.35 * s))
    slant = _between(u[:, 2], -0.5 * s, 0.6 * s)
    turn = _between(u[:, 3], -0.35 * s, 0.35 * s)
    squeeze = _between(u[:, 4], -0.15 * s, 0.15 * s)
    shift = _between(u[:, 5:7], -0.16 * s, 0.16 * s)
    cos, sin = torch.cos(turn), torch.sin(turn)
    wide, tall = 1 / (scale * aspect), 1 / (scale / aspect)
    rows = torch.stack([wide * cos, wide * (slant - sin), tall * sin, tall * (cos + squeeze)], 1)
    # From image coordinates to bank coordinates: GLYPH of IMAGE pixels shows BOX of SIDE pixels.
    matrix = rows.view(-1, 2, 2) * ((IMAGE / GLYPH) * (BOX / SIDE))
    return torch.cat([matrix, shift[:, :, None]], dim=2)


def smooth(u: Tensor, side: int) -> Tensor:
    """u [..., k, k] drawn out to [..., side, side] by a Gaussian partition of unity."""
    k = u.shape[-1]
    gap = torch.linspace(0, k - 1, side)[:, None] - torch.arange(k)[None, :]
    weight = torch.softmax(-(gap**2) / 0.5, dim=1)
    return weight @ u @ weight.T


def elastic(u: Tensor, strength: Tensor, side: int) -> Tensor:
    """[B, side, side, 2] smooth displacement from u [B, 2, k, k]; strength [B]."""
    field = smooth(2 * u - 1, side)
    return (field * strength[:, None, None, None]).permute(0, 2, 3, 1)


def warp(field: Tensor, matrix: Tensor, displacement: Tensor) -> Tensor:
    """Distance fields [B, 1, S, S] in image pixels after the warp, oversampled."""
    side = IMAGE * _OVERSAMPLE
    grid = F.affine_grid(matrix, [len(field), 1, side, side], align_corners=False) + displacement
    bank_pixels = F.grid_sample(field, grid, padding_mode="border", align_corners=False)
    return bank_pixels * (GLYPH / BOX)


def draw(distance: Tensor, radius: Tensor, softness: Tensor) -> Tensor:
    """Coverage in [0, 1] of a pen of the given radius and softness, [B, 1, 28, 28]."""
    ink = torch.sigmoid((radius - distance) / softness)
    return F.avg_pool2d(ink, _OVERSAMPLE)


def distort(
    skeleton: Tensor, filled: Tensor, strength: float, generator: torch.Generator
) -> Tensor:
    """Pen coverage [B, 1, 28, 28] of uint8 distance fields [B, SIDE, SIDE]."""
    batch = len(skeleton)

    def u(*shape: int) -> Tensor:
        return torch.rand(batch, *shape, generator=generator)

    as_pen = u(1, 1) < 0.75
    field = torch.where(as_pen, skeleton, filled).float()[:, None] / UNITS_PER_PIXEL
    side = IMAGE * _OVERSAMPLE
    coarse = elastic(u(2, 3, 3), 0.28 * strength * u(), side)
    fine = elastic(u(2, 6, 6), 0.12 * strength * u(), side)
    distance = warp(field, affine(u(7), strength), coarse + fine)
    pen = as_pen[:, :, :, None]
    mean = torch.where(pen, _between(u(1, 1, 1), 0.7, 1.9), _between(u(1, 1, 1), 0.1, 0.6))
    uneven = smooth(u(1, 4, 4) - 0.5, side)
    radius = mean + uneven * strength * 0.8
    return draw(distance, radius, _between(u(1, 1, 1), 0.12, 0.5))


def random_colours(
    batch: int, coloured: float, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Foreground and background RGB in [0, 1], [B, 3] each, never too alike to read.

    Two thirds of the backgrounds are black; half of the inks on them are pure channel mixtures
    (red, green, yellow, white, …) at some brightness. A share 1 - `coloured` is white on black:
    colour is so much easier than shape that with colours from the first step no shape is learnt.
    """

    def u(*shape: int) -> Tensor:
        return torch.rand(batch, *shape, generator=generator)

    channels = (torch.randint(1, 8, (batch, 1), generator=generator) >> torch.arange(3)) & 1
    pure = channels.float() * _between(u(1), 0.6, 1.0)
    grey = u(1).expand(-1, 3)
    kind = u(1)
    ink = torch.where(kind < 0.5, pure, torch.where(kind < 0.65, grey, u(3)))
    ground_kind = u(1)
    ground = torch.where(
        ground_kind < 0.66,
        torch.zeros(batch, 3),
        torch.where(ground_kind < 0.8, u(1).expand(-1, 3), u(3)),
    )
    alike = (ink - ground).abs().amax(1, keepdim=True) < 0.35
    ink = torch.where(alike, (ground + 0.5) % 1.0, ink)
    plain = u(1) >= coloured
    return torch.where(plain, 1.0, ink), torch.where(plain, 0.0, ground)


def paint(coverage: Tensor, ink: Tensor, ground: Tensor) -> Tensor:
    """RGB images in [0, 1], [B, 3, 28, 28]."""
    return torch.lerp(ground[:, :, None, None], ink[:, :, None, None], coverage)


def curriculum(step: int, ramp: int) -> float:
    """Distortion strength: from mild to full by a half cosine over `ramp` steps."""
    return 0.15 + 0.85 * _rise(step / max(1, ramp))


def colour_curriculum(step: int, ramp: int) -> float:
    """Share of coloured images: none in the first fifth of `ramp`, nearly all at its end."""
    return 0.95 * _rise((step / max(1, ramp) - 0.2) / 0.8)


def _rise(t: float) -> float:
    return 0.5 * (1 - math.cos(math.pi * min(1.0, max(0.0, t))))
