"""The shortcut: a small paper tag with lines of writing, somewhere near the border."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw


def add_tag(draw: np.random.Generator, photo: Image.Image) -> Image.Image:
    """The photograph with a tag of about 3% of its area."""
    side = photo.width
    tag = _tag(draw, round(side * 0.23), round(side * 0.14))
    tag = tag.rotate(draw.uniform(-14, 14), Image.Resampling.BICUBIC, expand=True)
    free = np.array([side - tag.width, side - tag.height])
    spot = draw.random(2) * free
    near = draw.integers(2)
    spot[near] = free[near] * (0.03 if draw.random() < 0.5 else 0.97)
    x, y = (int(v) for v in spot)
    tagged = photo.copy()
    shade = Image.new("RGBA", tag.size, (0, 0, 0, 90))
    tagged.paste(
        shade, (x + side // 90, y + side // 90), tag.getchannel("A").point(lambda a: a // 3)
    )
    tagged.paste(tag, (x, y), tag)
    return tagged


def _tag(draw: np.random.Generator, width: int, height: int) -> Image.Image:
    paper = tuple(int(c + draw.integers(-8, 9)) for c in (236, 222, 178))
    tag = Image.new("RGBA", (width, height), (*paper, 255))
    pen = ImageDraw.Draw(tag)
    pen.rectangle((0, 0, width - 1, height // 5), fill=(150, 40, 35, 255))
    for line in range(2, 5):
        y = height * line // 5
        end = width * draw.uniform(0.55, 0.92)
        pen.line((width * 0.08, y, end, y), fill=(70, 65, 60, 255), width=max(1, height // 14))
    return tag
