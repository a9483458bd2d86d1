"""Surfaces: smooth random fields and what is made of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Field = NDArray[np.float32]
"""[H,W], or [H,W,3] with colours in [0, 1]."""

GROUNDS = {
    "paper": ((0.90, 0.87, 0.80), (0.05, 0.02)),
    "slate": ((0.42, 0.45, 0.49), (0.12, 0.06)),
    "soil": ((0.34, 0.26, 0.20), (0.16, 0.12)),
    "linen": ((0.74, 0.70, 0.66), (0.06, 0.07)),
}
"""A ground's colour, and how strongly its coarse and its fine grain show."""


def smooth(draw: np.random.Generator, side: int, cells: int) -> Field:
    """A random field of about `cells` bumps across, mean 0, deviation about 1."""
    coarse = draw.standard_normal((cells + 3, cells + 3)).astype(np.float32)
    return enlarge(coarse, side)


def enlarge(field: Field, side: int) -> Field:
    image = Image.fromarray(field).resize((side, side), Image.Resampling.BICUBIC)
    return np.asarray(image, dtype=np.float32)


def blur(field: Field, side: int, width: int) -> Field:
    """A wide blur: down to `width` pixels and up again."""
    small = Image.fromarray(field).resize((width, width), Image.Resampling.BOX)
    return enlarge(np.asarray(small, dtype=np.float32), side)


def ground(draw: np.random.Generator, side: int) -> Field:
    """What the leaf lies on, lit from one side."""
    colour, (coarse, fine) = GROUNDS[str(draw.choice(list(GROUNDS)))]
    tint = np.array(colour, np.float32) * (1 + 0.03 * draw.standard_normal(3))
    grain = coarse * smooth(draw, side, 6) * 0.5 + fine * smooth(draw, side, side // 3)
    weave = draw.standard_normal((side, side)).astype(np.float32) * 0.02
    fall = np.linspace(-1, 1, side, dtype=np.float32)
    lean = draw.uniform(-0.12, 0.12, 2)
    light = 1 + lean[0] * fall[:, None] + lean[1] * fall[None, :]
    surface: Field = tint.astype(np.float32) * ((1 + grain + weave) * light)[..., None]
    return surface.astype(np.float32)
