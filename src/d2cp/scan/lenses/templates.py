"""Details that recur: pieces of single pictures that many others hold nearly unchanged.

A label, a logo, a time stamp or a ruler is the same thing in every picture that has it, which
hardly any piece of a natural scene is. So pieces of pictures are taken at random and looked for in
other pictures. The best match of a piece of scenery varies little from picture to picture; that of
a piece of a label makes two heaps, pictures that have it and pictures that have not. The pieces
with two heaps are kept as templates. No label is needed for any of this.

Pieces are compared in grey, freed of brightness and contrast, and in whitened frequencies: the
cosine transform parts natural pictures into uncorrelated numbers nearly as well as their own
principal components do, and is quick.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from d2cp.core.rng import numpy_generator
from d2cp.scan.batched import Arrays, Floats
from d2cp.scan.lenses.simple import luma
from d2cp.scan.lenses.windows import window_means
from d2cp.scan.workers import each

FINE = 120
"""Side at which details are looked for: at half of it the strokes of letters are gone."""
STRIDE = 2
"""Pieces are compared at every second row and column."""
SHARE = 4.2
"""A picture is so many pieces wide."""
FREQUENCIES = 0.45
"""Frequencies kept along a piece's side, as a share of its pixels."""
EPSILON = 1e-3
"""Variance that counts as contrast."""
FLOOR = 0.1
"""Spread of a frequency that is always there, as a share of the mean: rare ones are noise."""


@dataclass(frozen=True)
class Templates:
    """`mean` and `spread` [M] of the frequencies of pieces of `side` pixels, over all pictures
    (the spread of what is left out is infinite); `templates` [K, M] of unit length."""

    side: int
    mean: Tensor
    spread: Tensor
    templates: Tensor

    def responses(self, fine: Tensor) -> Tensor:
        """Cosine of every template with the piece at every second place: [B, K, h, w]."""
        answer = torch.stack([self.templates @ self.pieces(one) for one in fine])
        places = math.isqrt(answer.shape[2])
        return answer.reshape(*answer.shape[:2], places, places)

    def largest(self, fine: Tensor) -> Tensor:
        """The best match in each picture: [B, K]."""
        return torch.stack([(self.templates @ self.pieces(one)).amax(1) for one in fine])

    def pieces(self, picture: Tensor) -> Tensor:
        """Whitened pieces of unit length [M, h·w] of one picture, which stay in a core's cache."""
        white = (spectra(picture, self.side) - self.mean[:, None]) / self.spread[:, None]
        return white / white.square().sum(0).sqrt().clamp(min=1e-3)

    def in_pixels(self) -> Tensor:
        """Slopes of the match by each pixel of a piece, but for a factor of each piece, and without
        brightness: [K, side, side]."""
        waves = _waves(self.side)
        slopes = (self.templates / self.spread).reshape(-1, len(waves), len(waves))
        return torch.einsum("kij,iy,jx->kyx", slopes, waves, waves)

    def arrays(self) -> Arrays:
        parts = {"mean": self.mean, "spread": self.spread, "templates": self.templates}
        side = np.array([self.side], np.float32)
        return {"side": side} | {k: v.numpy() for k, v in parts.items()}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Templates:
        tensors = (torch.from_numpy(arrays[k]) for k in ("mean", "spread", "templates"))
        return cls(int(arrays["side"][0]), *tensors)


def to_fine(images: Tensor) -> Tensor:
    """Grey pictures [B, S, S] of at most FINE pixels a side."""
    grey = luma(images)[:, None]
    if grey.shape[-1] > FINE:
        grey = F.interpolate(grey, (FINE, FINE), mode="bilinear", antialias=True)
    return grey[:, 0]


def spectra(picture: Tensor, side: int) -> Tensor:
    """Frequencies of every second piece of a picture [S, S] along both sides, relative to its
    contrast and size: [k², h·w]."""
    waves, grey = _waves(side), picture[None, None]
    down = F.conv2d(grey, waves[:, None, :, None], stride=(STRIDE, 1))  # [1, k, h, S]
    both = F.conv2d(down[0][:, None], waves[:, None, None, :], stride=(1, STRIDE))  # [k, k, h, w]
    moments = torch.stack([picture, picture.square()])
    mean, square = window_means(moments, side, STRIDE).flatten(1)
    contrast = torch.sqrt((square - mean * mean).clamp(min=0) + EPSILON)
    found: Tensor = both.flatten(2).flatten(0, 1) / (contrast * side)
    return found


@lru_cache(maxsize=8)
def _waves(side: int) -> Tensor:
    """The cosine transform [k, side] of `side` pixels in a line."""
    count = max(3, round(FREQUENCIES * side))
    at, frequency = torch.arange(side) + 0.5, torch.arange(count)
    waves: Tensor = torch.cos(torch.pi * at * frequency[:, None] / side) * (2 / side) ** 0.5
    waves[0] *= 0.5**0.5
    return waves


def left_out(side: int) -> Tensor:
    """Pairs of frequencies [k²] that do not count: brightness, and the corner of the finest."""
    count = len(_waves(side))
    frequency = torch.arange(count)
    square = frequency[:, None] ** 2 + frequency**2
    return ((square == 0) | (square > (count - 0.5) ** 2)).flatten()


def learn_templates(fine: Tensor, count: int, seed: int, *, tried: int = 2500) -> Templates:
    """From grey pictures [N, S, S]: of `tried` pieces the `count` whose best matches make two heaps
    most clearly."""
    side = max(4, round(fine.shape[-1] / SHARE))
    draw = numpy_generator(seed, f"scan/templates/{side}")
    some = torch.cat(each(lambda one: spectra(one, side)[:, ::7], fine), dim=1)
    mean, spread, out = some.mean(1), some.std(1), left_out(side)
    spread = (spread + FLOOR * spread[~out].mean() + 1e-6).masked_fill(out, torch.inf)
    plain = Templates(side, mean, spread, torch.zeros(0, len(mean)))
    places = plain.pieces(fine[0]).shape[1]
    source = draw.integers(len(fine), size=tried)
    place = torch.from_numpy(draw.integers(places, size=tried))
    order = np.argsort(source, kind="stable")  # pictures one after the other
    source, place = source[order], place[order]

    def taken(number: int) -> Tensor:
        own = place[source == number]
        return plain.pieces(fine[number])[:, own].T

    candidates = torch.cat(each(taken, range(len(fine))))
    whole = Templates(side, plain.mean, plain.spread, candidates)
    matched = torch.cat(each(whole.largest, torch.split(fine, 1))).numpy()
    matched[source, np.arange(tried)] = np.nan  # a piece is in its own picture
    best = np.argsort(-two_heaps(matched), kind="stable")[:count]
    return Templates(side, plain.mean, plain.spread, candidates[np.sort(best)])


def two_heaps(matched: Floats) -> Floats:
    """Sarle's coefficient of bimodality of each column, (skewness² + 1) / kurtosis; blanks are left
    out."""
    x = matched.astype(np.float64)
    x = (x - np.nanmean(x, axis=0)) / (np.nanstd(x, axis=0) + 1e-9)
    skewness, kurtosis = np.nanmean(x**3, axis=0), np.nanmean(x**4, axis=0)
    found: Floats = ((skewness**2 + 1) / (kurtosis + 1e-9)).astype(np.float32)
    return found
