"""A labelled grid of images: plain Pillow, readable by itself."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from d2cp.core.arrays import Bytes as Pixels
from d2cp.core.files import write_bytes

INK, FAINT, PAPER, RULE = (25, 25, 30), (105, 105, 115), (255, 255, 255), (225, 225, 230)
MARGIN, GAP = 18, 6
LABEL = 150  # a row's label is wrapped at this width


def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


@dataclass(frozen=True)
class Grid:
    """Rows of uint8 [H,W,3] images (None leaves a place empty) with a title and labels. An oblong
    image is as long as a cell and lies in its middle."""

    title: str
    note: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Pixels | None]]]
    cell: int = 112
    breaks: Sequence[int] = ()
    """Columns before which a wider gap is left."""

    def draw(self) -> Image.Image:
        labels = [_wrap(label, LABEL, 13) for label, _ in self.rows]
        left = MARGIN + max([_width(line, 13) for lines in labels for line in lines] + [0]) + 12
        xs, x = [], left
        for i in range(len(self.columns)):
            x += 3 * GAP if i in self.breaks else 0
            xs.append(x)
            x += self.cell + GAP
        note = _wrap(self.note, max(x, 520) - 2 * MARGIN, 13)
        heads = [_wrap(label, self.cell, 13) for label in self.columns]
        head_lines = max((len(lines) for lines in heads), default=0)
        top = MARGIN + 28 + 18 * len(note) + 8
        body = top + 17 * head_lines + 6
        width = max(x + MARGIN, _width(self.title, 20) + 2 * MARGIN, 520)
        height = body + len(self.rows) * (self.cell + GAP) + MARGIN
        image = Image.new("RGB", (int(width), int(height)), PAPER)
        pen = ImageDraw.Draw(image)
        pen.text((MARGIN, MARGIN - 4), self.title, INK, font(20))
        for i, line in enumerate(note):
            pen.text((MARGIN, MARGIN + 26 + 18 * i), line, FAINT, font(13))
        for x, lines in zip(xs, heads, strict=True):
            for i, line in enumerate(lines):
                where = (x + self.cell / 2, top + 17 * (head_lines - len(lines) + i))
                pen.text(where, line, INK, font(13), anchor="ma")
        for number, (_, cells) in enumerate(self.rows):
            y = body + number * (self.cell + GAP)
            first = y + self.cell / 2 - 17 * (len(labels[number]) - 1) / 2
            for i, line in enumerate(labels[number]):
                pen.text((left - 10, first + 17 * i), line, INK, font(13), anchor="rm")
            for x, pixels in zip(xs, cells, strict=False):
                if pixels is not None:
                    made = _scaled(pixels, self.cell)
                    beside, above = ((self.cell - side) // 2 for side in made.size)
                    image.paste(made, (int(x) + beside, y + above))
        return image


def heat_over(pixels: Pixels, heat: NDArray[np.float32]) -> Pixels:
    """A map in [0, 1] laid over an image: grey where it is low, warm where it is high."""
    grey = pixels.mean(-1, keepdims=True).repeat(3, -1) * 0.45
    warm = pixels * 0.55 + np.array([255, 60, 0], dtype=np.float32) * 0.45
    mixed = grey + heat[..., None] * (warm - grey)
    out: Pixels = mixed.clip(0, 255).astype(np.uint8)
    return out


def save_png(image: Image.Image, path: Path) -> None:
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    write_bytes(path, buffer.getvalue())


def _scaled(pixels: Pixels, cell: int) -> Image.Image:
    image = Image.fromarray(pixels)
    longer = max(image.size)
    how = Image.Resampling.NEAREST if longer < cell / 3 else Image.Resampling.BICUBIC
    width, height = (max(1, round(cell * side / longer)) for side in image.size)
    return image.resize((width, height), how)


def _width(text: str, size: int) -> float:
    return float(font(size).getlength(text))


def _wrap(text: str, width: float, size: int) -> list[str]:
    lines: list[str] = []
    for word in text.split():
        if lines and _width(f"{lines[-1]} {word}", size) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines
