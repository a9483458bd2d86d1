"""Where a concept is a colour: its edit as one map of colours, which the real image goes through.

An edit (`d2cp.disentangle.edits`) adds to an image what moving a concept changes, and leaves a
trace of what was there before, by which a classifier can still tell. Where all that changes is
colour, one affine map of the three channels says the same of every pixel, and says it sharply. It
is fitted to pixels before and after their edit, and then brought to the colours that images with
the other value really have: edits are paler than these.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from d2cp.core.arrays import Bytes, Floats

RARE = 1e-3
"""Variance of a direction of colours that no image with the other value has, relative to most."""
FAINT = 1e-3
"""Singular values of the colours before, relative to the largest, that say nothing."""
MOST = 2.0
"""How far colours are stretched at most to be as strong as real ones."""


@dataclass(frozen=True)
class ColourMap:
    """colour @ weight + offset, colours in [0, 1]; `explained` is the share of the edits' variance
    that the map gives."""

    weight: Floats  # [3, 3]
    offset: Floats  # [3]
    explained: float

    def __call__(self, pixels: Bytes) -> Bytes:
        """Images [..., 3] in the other value's colours."""
        made = (pixels / 255) @ self.weight + self.offset
        found: Bytes = (made.clip(0, 1) * 255).round().astype(np.uint8)
        return found


def fit_colour_map(before: Floats, after: Floats, real: Floats) -> ColourMap:
    """From colours [n, 3] and the same pixels' after an edit; `real` [m, 3] are colours of images
    that have the other value."""
    weight, offset = affine_fit(before, after)
    guess = before @ weight + offset
    spread = np.square(after - after.mean(0)).sum()
    explained = 1 - np.square(guess - after).sum() / max(float(spread), 1e-12)
    whole = weight @ to_real(guess, real)
    return ColourMap(whole, real.mean(0) - before.mean(0) @ whole, max(0.0, float(explained)))


def affine_fit(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """M and b of least squares, y = x M + b; directions that x hardly has are mapped to nothing."""
    centre, target = x.mean(0), y.mean(0)
    weight = np.linalg.pinv(x - centre, rcond=FAINT) @ (y - target)
    return weight, target - centre @ weight


def to_real(colours: Floats, real: Floats) -> Floats:
    """[3, 3]: along each principal direction of the real colours as strong as they are; what lies
    in none of them goes."""
    variance, directions = np.linalg.eigh(_covariance(real))
    own = np.diag(directions.T @ _covariance(colours) @ directions)
    stretch = np.sqrt(variance.clip(0) / own.clip(1e-12)).clip(0, MOST)
    stretch[variance <= RARE * variance.max()] = 0
    found: Floats = directions @ np.diag(stretch) @ directions.T
    return found


def _covariance(x: Floats) -> NDArray[np.float64]:
    centred = x - x.mean(0)
    found: Floats = centred.T @ centred / len(x)
    return found
