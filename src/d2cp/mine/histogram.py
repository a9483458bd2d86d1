"""The score's histogram with its threshold, as a picture that is readable by itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from d2cp.core.arrays import Floats, Ints

COLOURS = (
    (46, 98, 170),
    (214, 121, 30),
    (62, 140, 84),
    (150, 80, 150),
    (190, 60, 70),
    (90, 90, 90),
)
SIZE, LEFT, TOP, BOTTOM = (760, 420), 60, 84, 52
BINS = 60


def histogram_picture(
    score: Floats, y: Ints, class_names: Sequence[str], threshold: float | None
) -> Image.Image:
    """Share of each class's images by score; the threshold splits the pseudo attribute."""
    image = Image.new("RGB", SIZE, (255, 255, 255))
    pen = ImageDraw.Draw(image, "RGBA")
    ink, faint = (25, 25, 30), (105, 105, 115)
    pen.text((20, 14), "Score of the mined concepts, by class", ink, ImageFont.load_default(20))
    note = "Two humps in one class: some of its images carry the other class's value."
    pen.text((20, 42), note, faint, ImageFont.load_default(13))
    low, high = np.quantile(score, [0.001, 0.999])
    if threshold is not None:
        low, high = min(low, threshold), max(high, threshold)
    high = high if high > low else low + 1.0
    edges = np.linspace(low, high, BINS + 1)
    inside = np.clip(score, low, high)
    shares = [
        np.histogram(inside[y == c], edges)[0] / max(1, (y == c).sum())
        for c in range(len(class_names))
    ]
    peak = max(float(np.max(s)) for s in shares) or 1.0
    width, base = SIZE[0] - LEFT - 20, SIZE[1] - BOTTOM
    step = width / BINS
    for c, share in enumerate(shares):
        colour = COLOURS[c % len(COLOURS)]
        for b, value in enumerate(share):
            if value > 0:
                # The square root keeps a minority of a few images visible beside the majority.
                height = (base - TOP - 24) * float(np.sqrt(value / peak))
                x = LEFT + b * step
                pen.rectangle((x, base - height, x + step - 1, base), (*colour, 130))
        x, row = LEFT + 150 * (c % 4), c // 4
        if row < 2:
            pen.rectangle((x, TOP - 20 + 16 * row, x + 10, TOP - 10 + 16 * row), colour)
            name = str(class_names[c])[:18]
            pen.text((x + 15, TOP - 23 + 16 * row), name, ink, ImageFont.load_default(13))
    pen.line((LEFT, base, LEFT + width, base), faint)
    if threshold is not None:
        x = LEFT + width * (threshold - low) / (high - low)
        for y0 in range(TOP + 14, base, 8):
            pen.line((x, y0, x, y0 + 4), ink, 2)
        pen.text((x, base + 6), f"threshold {threshold:.2f}", ink, ImageFont.load_default(12), "ma")
    pen.text((LEFT, base + 24), f"{low:.2f}", faint, ImageFont.load_default(12))
    pen.text((LEFT + width, base + 24), f"{high:.2f}", faint, ImageFont.load_default(12), "ra")
    pen.text((14, TOP), "√share", faint, ImageFont.load_default(12))
    return image
