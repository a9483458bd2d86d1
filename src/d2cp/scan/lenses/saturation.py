"""How colourful a picture is, whatever its colours are.

A share of the colour taken out of a picture makes every chroma smaller by the same factor: a step
in each logarithm, which a linear reading can see over the spread that pictures have anyway.
"""

from __future__ import annotations

import torch
from torch import Tensor

from d2cp.scan.lenses.simple import luma, shrink

SIDES = (144, 72, 36)
"""Sides at which edges of chroma are held against edges of brightness."""
QUANTILES = (0.1, 0.3, 0.5, 0.7, 0.9, 0.97)
FLOOR = 0.01


def saturation(images: Tensor) -> Tensor:
    """Features [B, D] of images [B, 3, S, S] in [0, 1], all of them logarithms."""
    columns = [column for side in SIDES for column in _edges(shrink(images, side))]
    small = shrink(images, SIDES[-1]).flatten(2)
    top = small.amax(1)
    apart = top - small.amin(1)
    at = small.new_tensor(QUANTILES)
    for chroma in (apart, apart / (top + 0.05)):
        columns += [*torch.log(torch.quantile(chroma, at, dim=1) + FLOOR)]
    return torch.stack([*columns, torch.log(apart.mean(1) + FLOOR)], dim=1)


def _edges(images: Tensor) -> tuple[Tensor, Tensor]:
    """Edges of chroma against edges of brightness: their mean size, and its square."""
    grey = luma(images)[:, None]
    colours, light = (_slopes(x) for x in (images - grey, grey))
    return (
        torch.log(colours.abs().mean(1) + 1e-3) - torch.log(light.abs().mean(1) + 1e-3),
        torch.log(colours.square().mean(1) + 1e-6) - torch.log(light.square().mean(1) + 1e-6),
    )


def _slopes(x: Tensor) -> Tensor:
    return torch.cat([x.diff(dim=3).flatten(1), x.diff(dim=2).flatten(1)], dim=1)


def chroma_of(images: Tensor) -> Tensor:
    """Mean size of the chroma [B, 1, 1, 1]."""
    grey = luma(images)[:, None]
    return (images - grey).abs().mean((1, 2, 3), keepdim=True) + 1e-3


def give_saturation(images: Tensor, donors: Tensor) -> Tensor:
    """Each picture's own colours, as strong as the donor's."""
    grey = luma(images)[:, None]
    return grey + (images - grey) * (chroma_of(donors) / chroma_of(images)).clamp(0.1, 10)
