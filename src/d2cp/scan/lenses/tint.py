"""The tint of the light: whether a picture is bluish as a whole, whatever is in it.

Which colours a photograph has depends on what it shows. What its light leaves on grey things,
highlights and edges depends on that far less: edges are grey more often than surfaces are
(van de Weijer, Gevers, Gijsenij 2007), and so are highlights.
"""

from __future__ import annotations

import torch
from torch import Tensor

from d2cp.scan.lenses.simple import shrink

PAIRS = ((0, 1), (0, 2), (1, 2))
SIDES = (72, 36)
"""Sides at which edges are compared; finer ones have lost their colour in most JPEG files."""
GREYS = (0.1, 0.2, 0.35)
"""How far apart the logarithms of a pixel's channels may be for it to count as grey."""
LIGHTS = ((0.0, 0.02), (0.0, 0.1), (0.9, 1.0), (0.97, 1.0), (0.995, 1.0))
"""Shares of the pixels by brightness: shadows and highlights."""
BINS, REACH = 16, 0.64
"""Histogram of the edges' hues: its cells, and the largest logarithm of a ratio."""
FLOOR = 0.02


def tint(images: Tensor) -> Tensor:
    """Features [B, D] of images [B, 3, S, S] in [0, 1]."""
    small = shrink(images, SIDES[-1])
    sides = [shrink(images, side) for side in SIDES]
    columns = [edges(s) for s in sides]
    columns += [edge_hues(small), greys(small), lights(small), ceilings(small)]
    return torch.cat(columns, dim=1)


def _between(logs: Tensor) -> Tensor:
    """Differences of the channels' logarithms: [B, 3, …] → [B, 3, …]."""
    return torch.stack([logs[:, i] - logs[:, j] for i, j in PAIRS], dim=1)


def _slopes(images: Tensor) -> tuple[Tensor, Tensor]:
    here = images[:, :, :-1, :-1]
    return images[:, :, :-1, 1:] - here, images[:, :, 1:, :-1] - here


def edges(images: Tensor) -> Tensor:
    """The channels' edges against each other: three means of their size, and regressions."""
    across, down = _slopes(images)
    square = (across.square() + down.square()).flatten(2)
    sizes = (
        (square + 1e-12).sqrt().mean(2),
        square.mean(2).add(1e-12).sqrt(),
        square.pow(3).mean(2).add(1e-24).pow(1 / 6),
    )
    ratios = [_between(torch.log(size + 1e-3)) for size in sizes]
    both = torch.cat([across.flatten(2), down.flatten(2)], dim=2)
    common = both @ both.transpose(1, 2) / both.shape[2] + 1e-6
    parts = [common[:, i, j].clamp(min=1e-6) / common[:, j, j] for i, j in PAIRS]
    return torch.cat([*ratios, torch.log(torch.stack(parts, 1).clamp(0.2, 5))], dim=1)


def edge_hues(images: Tensor) -> Tensor:
    """Histograms of the edges' ratios red : green and blue : green, large edges counting more."""
    across, down = _slopes(images)
    size = (across.abs() + down.abs()).flatten(2)
    logs = torch.log(size + FLOOR)
    weight = size.sum(1)
    weight = weight / weight.sum(1, keepdim=True).clamp(min=1e-6)
    found = []
    for hue in (logs[:, 0] - logs[:, 1], logs[:, 2] - logs[:, 1]):
        place = (hue.clamp(-REACH, REACH) / REACH + 1) / 2 * (BINS - 1)
        low = place.detach().floor().clamp(max=BINS - 2)
        above = place - low
        cells = torch.zeros(len(hue), BINS, dtype=images.dtype)
        cells = cells.scatter_add(1, low.long(), weight * (1 - above))
        found.append(cells.scatter_add(1, low.long() + 1, weight * above))
    return torch.sqrt(torch.cat(found, dim=1) + 1e-6)


def greys(images: Tensor) -> Tensor:
    """Mean tint of the pixels that are nearly grey."""
    logs = torch.log(images.flatten(2) + FLOOR)
    hues, apart = _between(logs), logs.amax(1) - logs.amin(1)
    found = []
    for width in GREYS:
        weight = torch.exp(-(apart / width).square()) + 1e-4
        found.append(torch.einsum("bp,bcp->bc", weight, hues) / weight.sum(1, keepdim=True))
    return torch.cat(found, dim=1)


def lights(images: Tensor) -> Tensor:
    """Mean tint of shadows and highlights."""
    pixels = images.flatten(2)
    hues, order = _between(torch.log(pixels + FLOOR)), pixels.sum(1).argsort(1)
    n = order.shape[1]
    found = []
    for low, high in LIGHTS:
        first = min(int(low * n), n - 1)
        part = order[:, first : max(first + 1, round(high * n))]
        found.append(hues.gather(2, part[:, None].expand(-1, 3, -1)).mean(2))
    return torch.cat(found, dim=1)


def ceilings(images: Tensor) -> Tensor:
    """Each channel's largest value, and the share of its pixels that are nearly full."""
    pixels = images.flatten(2)
    full = (pixels > 0.97).to(images.dtype).mean(2)
    return torch.cat([pixels.amax(2), full.sqrt()], dim=1)


def strengths(images: Tensor) -> Tensor:
    """How strong each channel's edges are, relative to all: [B, 3, 1, 1], about 1 in grey light."""
    across, down = _slopes(shrink(images, SIDES[-1]))
    size = (across.abs() + down.abs()).mean((2, 3), keepdim=True) + 1e-3
    return size / size.mean(1, keepdim=True)


def give_tint(images: Tensor, donors: Tensor) -> Tensor:
    """The donor's light: each channel made stronger or weaker as a whole."""
    return images * (strengths(donors) / strengths(images)).clamp(0.5, 2)


def without_tint(images: Tensor) -> Tensor:
    """The picture in grey light."""
    return images / strengths(images).clamp(0.5, 2)
