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

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from d2cp.core.rng import numpy_generator
from d2cp.scan.batched import Arrays, Floats
from d2cp.scan.lenses.simple import luma
from d2cp.scan.workers import each

FINE = 120
"""Side at which details are looked for: at half of it the strokes of letters are gone."""
STRIDE = 2
"""Pieces are compared at every second row and column."""
SHARE = 4.4
"""A picture is so many pieces wide."""
FREQUENCIES = 0.45
"""Frequencies kept along a piece's side, as a share of its pixels."""
EPSILON = 1e-3
"""Variance that counts as contrast."""
FLOOR = 0.1
"""Spread of a frequency that is always there, as a share of the mean: rare ones are noise."""


@dataclass(frozen=True)
class Templates:
    """`mean` and `spread` [M] of the frequencies of pieces of `side` pixels, over all pictures;
    `templates` [K, M] of unit length."""

    side: int
    mean: Tensor
    spread: Tensor
    templates: Tensor

    def responses(self, fine: Tensor) -> Tensor:
        """Cosine of every template with the piece at every second place: [B, K, h, w]."""
        pieces, places = self.pieces(fine)
        return (self.templates @ pieces).reshape(len(fine), -1, places, places)

    def largest(self, fine: Tensor) -> Tensor:
        """The best match in each picture: [B, K]. One picture at a time stays in the cache."""
        pieces, _ = self.pieces(fine)
        return torch.stack([(self.templates @ one).amax(1) for one in pieces])

    def pieces(self, fine: Tensor) -> tuple[Tensor, int]:
        """Whitened pieces of unit length [B, M, h·w], and h = w."""
        found, places = spectra(fine, self.side)
        white = (found - self.mean[:, None]) / self.spread[:, None]
        return white / white.square().sum(1, keepdim=True).sqrt().clamp(min=1e-3), places

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


def spectra(fine: Tensor, side: int) -> tuple[Tensor, int]:
    """Frequencies of every second piece, relative to its contrast: [B, M, h·w], and h = w."""
    along, keep = _transform(fine.shape[-1], side)
    places, count = along.shape[:2]
    flat = along.flatten(0, 1)
    both = (flat @ fine @ flat.T).reshape(-1, places, count, places, count)
    found = both.permute(0, 2, 4, 1, 3).flatten(1, 2)[:, keep].flatten(2)
    grey = fine[:, None]
    mean, square = (F.avg_pool2d(x, side, STRIDE).flatten(2) for x in (grey, grey.square()))
    contrast = torch.sqrt((square - mean * mean).clamp(min=0) + EPSILON)
    return found / (contrast * side), places


@lru_cache(maxsize=8)
def _transform(size: int, side: int) -> tuple[Tensor, Tensor]:
    """The cosine transform of every second stretch of `side` pixels [h, k, size], and which pairs
    of frequencies are kept [k²]: those within a quarter circle, brightness apart."""
    count = max(3, round(FREQUENCIES * side))
    at, frequency = torch.arange(side) + 0.5, torch.arange(count)
    waves = torch.cos(torch.pi * at * frequency[:, None] / side) * (2 / side) ** 0.5
    waves[0] *= 0.5**0.5
    places = (size - side) // STRIDE + 1
    along = torch.zeros(places, count, size)
    for n in range(places):
        along[n, :, STRIDE * n : STRIDE * n + side] = waves
    square = frequency[:, None] ** 2 + frequency**2
    return along, ((square > 0) & (square <= (count - 0.5) ** 2)).flatten()


def learn_templates(
    fine: Tensor, count: int, seed: int, *, tried: int = 1500, together: int = 8
) -> Templates:
    """From grey pictures [N, S, S]: of `tried` pieces the `count` whose best matches make two heaps
    most clearly."""
    side = max(4, round(fine.shape[-1] / SHARE))
    draw = numpy_generator(seed, f"scan/templates/{side}")
    parts = [fine[start : start + together] for start in range(0, len(fine), together)]
    some = torch.cat(each(lambda part: spectra(part, side)[0][:, :, ::7], parts))
    mean = some.mean((0, 2))
    spread = some.transpose(0, 1).flatten(1).std(1)
    plain = Templates(side, mean, spread + FLOOR * spread.mean() + 1e-6, torch.zeros(0, len(mean)))
    places = plain.pieces(fine[:1])[0].shape[2]
    source = draw.integers(len(fine), size=tried)
    place = torch.from_numpy(draw.integers(places, size=tried))
    order = np.argsort(source, kind="stable")  # pictures one after the other
    source, place = source[order], place[order]

    def taken(number: int) -> Tensor:
        own = place[source == number]
        return plain.pieces(fine[number : number + 1])[0][0][:, own].T

    candidates = torch.cat(each(taken, range(len(fine))))
    whole = Templates(side, plain.mean, plain.spread, candidates)
    matched = torch.cat(each(whole.largest, parts)).numpy()
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
