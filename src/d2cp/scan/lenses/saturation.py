"""How colourful a picture is, whatever its colours are.

A share of the colour taken out of a picture makes every chroma smaller by the same factor: a step
in each logarithm, which a linear reading can see over the spread that pictures have anyway. And it
keeps every colour away from the edge of what can be shown, where most pictures have some: black in
one channel, or white in one.
"""

from __future__ import annotations

import torch
from torch import Tensor

from d2cp.scan.lenses.simple import luma, shrink

SIDES = (144, 72, 36)
"""Sides at which edges of chroma are held against edges of brightness."""
QUANTILES = (0.1, 0.3, 0.5, 0.7, 0.9, 0.97)
FLOOR = 0.01
EDGE = (0.2, 0.3, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7, 0.8, 0.9)
"""How near a colour is to the edge, from 0 (grey) to 1 (on it)."""
EXTREME = (0.9, 0.97, 0.99, 0.997)
LEAST = 3e-4
"""Share of a picture that counts as none."""


def saturation(images: Tensor) -> Tensor:
    """Features [B, D] of images [B, 3, S, S] in [0, 1], all of them logarithms."""
    columns = [column for side in SIDES for column in _edges(shrink(images, side))]
    small = shrink(images, SIDES[-1]).flatten(2)
    top = small.amax(1)
    apart = top - small.amin(1)
    at = small.new_tensor(QUANTILES)
    for chroma in (apart, apart / (top + 0.05)):
        columns += [*torch.log(torch.quantile(chroma, at, dim=1) + FLOOR)]
    columns += [torch.log(apart.mean(1) + FLOOR), *_near_the_edge(images)]
    return torch.stack(columns, dim=1)


def _near_the_edge(images: Tensor) -> list[Tensor]:
    """How large a part of the picture is so near to either edge, and how near its nearest are."""
    grey = luma(images)
    black = (grey - images.amin(1)) / (grey + 0.03)
    white = (images.amax(1) - grey) / (1 - grey + 0.03)
    columns = []
    for near in (black.flatten(1), white.flatten(1)):
        columns += [torch.log((near > at).to(near.dtype).mean(1) + LEAST) for at in EDGE]
        nearest = near.topk(max(1, round(near.shape[1] * (1 - EXTREME[0]))), dim=1).values
        ranks = [min(nearest.shape[1] - 1, round(near.shape[1] * (1 - q))) for q in EXTREME]
        columns += [torch.log(nearest[:, rank].clamp(min=0) + 2 * FLOOR) for rank in ranks]
    return columns


def _edges(images: Tensor) -> tuple[Tensor, Tensor]:
    """Edges of chroma against edges of brightness: their mean size, and its square."""
    grey = luma(images)[:, None]
    (far, square), (light, its_square) = (_slopes(x) for x in (images - grey, grey))
    return (
        torch.log(far + 1e-3) - torch.log(light + 1e-3),
        torch.log(square + 1e-6) - torch.log(its_square + 1e-6),
    )


def _slopes(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean size of the steps between neighbours and of its square, [B] each."""
    across, down = x.diff(dim=3).flatten(1), x.diff(dim=2).flatten(1)
    count = across.shape[1] + down.shape[1]
    return (
        (across.abs().sum(1) + down.abs().sum(1)) / count,
        (across.square().sum(1) + down.square().sum(1)) / count,
    )


def chroma_of(images: Tensor) -> Tensor:
    """Mean size of the chroma [B, 1, 1, 1]."""
    grey = luma(images)[:, None]
    return (images - grey).abs().mean((1, 2, 3), keepdim=True) + 1e-3


def give_saturation(images: Tensor, donors: Tensor) -> Tensor:
    """Each picture's own colours, as strong as the donor's."""
    grey = luma(images)[:, None]
    return grey + (images - grey) * (chroma_of(donors) / chroma_of(images)).clamp(0.1, 10)
