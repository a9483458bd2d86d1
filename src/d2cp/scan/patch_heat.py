"""Where a finding of patches is: how the score falls when no patch may touch a window.

The largest response outside a window is the largest of four: above, below, left and right of it.
So every window is left out exactly, without looking at the picture again. Repeated details are
larger than such a window and say themselves by which pixels they match (`template_heat`), and so do
coloured details by what stands out (`coloured_heat`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from d2cp.scan.bank import COARSE, COLOURED, REPEATED, Bank
from d2cp.scan.coloured_heat import coloured_heat
from d2cp.scan.finding import Reader
from d2cp.scan.lenses.patches import STRIDE
from d2cp.scan.lenses.simple import shrink
from d2cp.scan.lenses.templates import to_fine
from d2cp.scan.template_heat import template_heat

PATCH_LENSES = (REPEATED, COLOURED, "local pattern", "texture")
WINDOW = 0.2
"""Side of the windows left out, as a share of the picture's."""
SMOOTH = 1 / 9
"""Side of the window over which what pixels add is averaged, twice: about a patch."""


@torch.no_grad()
def patch_heat(bank: Bank, reader: Reader, images: Tensor, sides: list[int]) -> Tensor:
    """[B, S, S]: at each pixel the mean fall of the score towards `sides[i]` over the windows that
    cover it, a rise counting as nothing, or what repeated and coloured details add within such a
    window."""
    heat = torch.zeros(len(images), *images.shape[2:])
    if REPEATED in reader.weight:
        fine = to_fine(images)
        usual = torch.from_numpy(reader.centre[REPEATED])
        added = template_heat(bank.templates, _towards(reader, REPEATED, sides), usual, fine)
        heat += _smooth(added, images.shape[-1])
    if COLOURED in reader.weight:
        added = coloured_heat(_towards(reader, COLOURED, sides), images)
        heat += _smooth(added, images.shape[-1])
    kinds = (("local pattern", largest_drop), ("texture", mean_drop))
    if any(lens in reader.weight for lens, _ in kinds):
        coarse = shrink(images, COARSE)
        falls, start = Falls(len(images), coarse.shape[-1]), 0
        for dictionary in bank.dictionaries:
            answer = dictionary.responses(coarse)
            part = slice(start, start + answer.shape[1])
            start = part.stop
            drops = [
                (drop, _towards(reader, lens, sides)[:, part])
                for lens, drop in kinds
                if lens in reader.weight
            ]
            falls.add(answer, dictionary.side, drops)
        heat += falls.spread(images.shape[-1])
    return heat


Drop = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


class Falls:
    """The falls of the score, for every window of pictures of `side` pixels."""

    def __init__(self, pictures: int, side: int) -> None:
        self.side, self.window = side, max(2, round(side * WINDOW))
        self.corners = torch.arange(0, side - self.window + 1, STRIDE)
        self.total = torch.zeros(pictures, len(self.corners), len(self.corners))

    def add(self, answer: Tensor, patch: int, drops: Sequence[tuple[Drop, Tensor]]) -> None:
        """Of responses [B, K, h, w] of patches of so many pixels, each with its weights [B, K]."""
        first, last = touching(self.corners, self.window, patch, answer.shape[-1])
        for drop, weight in drops:
            self.total += drop(answer, weight, first, last)

    def spread(self, size: int) -> Tensor:
        """Over the pixels of pictures of `size`: [B, size, size]."""
        covering = (self.window / STRIDE) ** 2  # but for the edges
        return _spread(self.total.clamp(min=0) / covering, self.window, self.side, size)


def touching(corners: Tensor, window: int, patch: int, places: int) -> tuple[Tensor, Tensor]:
    """First and one past the last place whose patch touches [corner, corner + window)."""
    first = torch.div(corners - patch + STRIDE, STRIDE, rounding_mode="floor").clamp(min=0)
    last = torch.div(corners + window + STRIDE - 1, STRIDE, rounding_mode="floor")
    return first, last.clamp(max=places)


def largest_drop(answer: Tensor, weight: Tensor, first: Tensor, last: Tensor) -> Tensor:
    """Σ_k weight_k · (largest anywhere - largest outside) for every window: [B, n, n]. A window
    that leaves nothing outside takes the response to 0."""
    rows, columns = answer.amax(3), answer.amax(2)  # [B, K, h], [B, K, w]
    outside = torch.maximum(
        _outside(rows, first, last)[..., None], _outside(columns, first, last)[..., None, :]
    )
    nothing = outside.isinf()
    drop = answer.amax((2, 3))[..., None, None] - outside.masked_fill(nothing, 0)
    return torch.einsum("bkyx,bk->byx", drop, weight)


def _outside(line: Tensor, first: Tensor, last: Tensor) -> Tensor:
    """The largest before `first` or from `last` on, along the last axis."""
    none = torch.full_like(line[..., :1], -torch.inf)
    before = torch.cat([none, line.cummax(-1).values], -1)
    after = torch.cat([line.flip(-1).cummax(-1).values.flip(-1), none], -1)
    return torch.maximum(before[..., first], after[..., last])


def mean_drop(answer: Tensor, weight: Tensor, first: Tensor, last: Tensor) -> Tensor:
    """What the places of every window add to the mean of squares, weighted: [B, n, n]."""
    each = torch.einsum("bkhw,bk->bhw", answer.clamp(min=0).square(), weight)
    whole = F.pad(each.cumsum(1).cumsum(2), (1, 0, 1, 0)) / (answer.shape[2] * answer.shape[3])
    rows = whole[:, last] - whole[:, first]
    return rows[..., last] - rows[..., first]


def _towards(reader: Reader, lens: str, sides: list[int]) -> Tensor:
    """Weights [B, K] of what speaks for each picture's side."""
    weight = torch.from_numpy(reader.weight[lens] / reader.scale[lens][:, None])
    if weight.shape[1] > 1:
        return weight[:, sides].T
    return weight[:, 0] * torch.tensor([2.0 * side - 1 for side in sides])[:, None]


def _spread(fall: Tensor, window: int, side: int, size: int) -> Tensor:
    kernel = torch.ones(1, 1, window, window)
    made = F.conv_transpose2d(fall[:, None], kernel, stride=STRIDE)
    left = side - made.shape[-1]
    whole = F.pad(made, (0, left, 0, left))
    return F.interpolate(whole, (size, size), mode="bilinear", align_corners=False)[:, 0]


def _smooth(added: Tensor, size: int) -> Tensor:
    """What pixels [B, S, S] add, as within windows around them, in pictures of `size`."""
    side = added.shape[-1]
    width = smoothing(side)
    found = added[:, None] * max(2, round(side * WINDOW)) ** 2
    for _ in range(2):
        found = F.avg_pool2d(found, width, 1, width // 2, count_include_pad=False)
    return F.interpolate(found, (size, size), mode="bilinear", align_corners=False)[:, 0]


def smoothing(side: int) -> int:
    """An odd number of pixels, SMOOTH of a picture's side."""
    return max(3, 2 * round((side * SMOOTH - 1) / 2) + 1)
