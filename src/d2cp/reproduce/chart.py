"""A chart as a list of shapes, written twice from the same numbers: SVG and PNG."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Literal

from PIL import Image, ImageDraw

from d2cp.disentangle.canvas import font

Colour = str
Anchor = Literal["start", "middle", "end"]
INK, FAINT, RULE, GROUND = "#19191e", "#696973", "#e1e1e6", "#ffffff"
OURS, THEIRS = "#0f766e", "#c2410c"
ENLARGED = 2  # pixels of the PNG for one unit of the SVG


@dataclass(frozen=True)
class Line:
    points: tuple[tuple[float, float], ...]
    colour: Colour
    width: float = 1.0


@dataclass(frozen=True)
class Dot:
    x: float
    y: float
    colour: Colour
    radius: float = 4.5
    hollow: bool = False


@dataclass(frozen=True)
class Diamond:
    x: float
    y: float
    colour: Colour
    radius: float = 5.5


@dataclass(frozen=True)
class Words:
    x: float
    y: float
    text: str
    size: int = 13
    colour: Colour = INK
    anchor: Anchor = "start"


Shape = Line | Dot | Diamond | Words


@dataclass
class Chart:
    width: int
    height: int
    title: str
    shapes: list[Shape] = field(default_factory=list)

    def add(self, *shapes: Shape) -> None:
        self.shapes += shapes

    def svg(self) -> str:
        body = "\n".join(_svg(shape) for shape in self.shapes)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'width="{self.width}" height="{self.height}" role="img" '
            'font-family="system-ui, sans-serif">\n'
            f"<title>{escape(self.title)}</title>\n"
            f'<rect width="{self.width}" height="{self.height}" fill="{GROUND}"/>\n{body}\n</svg>\n'
        )

    def png(self) -> bytes:
        k = ENLARGED
        image = Image.new("RGB", (self.width * k, self.height * k), GROUND)
        pen = ImageDraw.Draw(image)
        for shape in self.shapes:
            _draw(pen, shape, k)
        buffer = io.BytesIO()
        image.save(buffer, "PNG", optimize=True)
        return buffer.getvalue()


def text_width(text: str, size: int = 13) -> float:
    return float(font(size).getlength(text))


def _svg(shape: Shape) -> str:
    match shape:
        case Line(points, colour, width):
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            return (
                f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>'
            )
        case Dot(x, y, colour, radius, hollow):
            fill = GROUND if hollow else colour
            return (
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{fill}" '
                f'stroke="{colour}" stroke-width="1.5"/>'
            )
        case Diamond(x, y, colour, r):
            path = " ".join(f"{px:.1f},{py:.1f}" for px, py in _corners(x, y, r))
            return f'<polygon points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"/>'
        case Words(x, y, text, size, colour, anchor):
            return (
                f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" '
                f'text-anchor="{anchor}">{escape(text)}</text>'
            )


def _draw(pen: ImageDraw.ImageDraw, shape: Shape, k: int) -> None:
    match shape:
        case Line(points, colour, width):
            pen.line([(x * k, y * k) for x, y in points], colour, max(1, round(width * k)))
        case Dot(x, y, colour, r, hollow):
            box = [(x - r) * k, (y - r) * k, (x + r) * k, (y + r) * k]
            pen.ellipse(box, GROUND if hollow else colour, colour, max(1, round(1.5 * k)))
        case Diamond(x, y, colour, r):
            corners = [(px * k, py * k) for px, py in _corners(x, y, r)]
            pen.line([*corners, corners[0]], colour, max(1, round(1.8 * k)), joint="curve")
        case Words(x, y, text, size, colour, anchor):
            place = {"start": "ls", "middle": "ms", "end": "rs"}[anchor]
            said = text.replace("α", "alpha")  # Pillow's own font has no Greek
            pen.text((x * k, y * k), said, colour, font(size * k), anchor=place)


def _corners(x: float, y: float, r: float) -> Sequence[tuple[float, float]]:
    return [(x, y - r), (x + r, y), (x, y + r), (x - r, y)]
