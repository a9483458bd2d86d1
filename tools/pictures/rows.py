"""Rows of square images under a line of text each: nothing else, so that it reads on a phone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from tools.pictures.theme import Theme

Pixels = NDArray[np.uint8]
WIDTH, GAP, TEXT, HEAD, SPLIT = 1080, 10, 32, 50, 34


@dataclass(frozen=True)
class Line:
    """One row; `right` stands over its second half, which is then set apart."""

    text: str
    images: Sequence[Pixels]
    right: str = ""


def draw_lines(lines: Sequence[Line], theme: Theme) -> Image.Image:
    """Transparent where there is no image and no text."""
    count = max(len(line.images) for line in lines)
    apart = SPLIT if any(line.right for line in lines) else 0
    cell = (WIDTH - apart - GAP * (count - 1)) // count
    tops, y = [], 0
    for line in lines:
        y += HEAD if line.text or line.right else GAP
        tops.append(y)
        y += cell
    whole = Image.new("RGBA", (WIDTH, y), (0, 0, 0, 0))
    pen, font = ImageDraw.Draw(whole), ImageFont.load_default(TEXT)
    for line, top in zip(lines, tops, strict=True):
        middle = count // 2 if apart else count
        pen.text((0, top - HEAD + 4), line.text, theme.ink, font)
        right = middle * (cell + GAP) + apart
        pen.text((right, top - HEAD + 4), line.right, theme.ink, font)
        for place, pixels in enumerate(line.images):
            x = place * (cell + GAP) + (apart if place >= middle else 0)
            whole.paste(_scaled(pixels, cell), (x, top))
    return whole


def _scaled(pixels: Pixels, side: int) -> Image.Image:
    image = Image.fromarray(pixels)
    how = Image.Resampling.NEAREST if image.width < side / 3 else Image.Resampling.BICUBIC
    return image.resize((side, side), how)
