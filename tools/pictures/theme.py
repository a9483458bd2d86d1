"""Two looks, with the report's own colours."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from d2cp.core.files import write_bytes

LARGEST = 150_000
"""Bytes of one picture: README loads several of them."""


@dataclass(frozen=True, kw_only=True)
class Theme:
    name: str
    ink: str
    quiet: str
    line: str
    before: str
    after: str


THEMES = (
    Theme(
        name="light",
        ink="#22262b",
        quiet="#646a73",
        line="#d8d4cd",
        before="#b25b1e",
        after="#146a8a",
    ),
    Theme(
        name="dark",
        ink="#e7e5e0",
        quiet="#a2a8b0",
        line="#3c4249",
        before="#e59b60",
        after="#63bbda",
    ),
)


def save_small(image: Image.Image, path: Path) -> None:
    """PNG for flat colours, WebP for photographs and screenshots: the best that LARGEST allows."""
    for quality in (92, 85, 75, 60):
        buffer = io.BytesIO()
        if path.suffix == ".png":
            colours = round(256 * quality / 92)
            packed = image.quantize(colours, Image.Quantize.FASTOCTREE)
            packed.save(buffer, "PNG", optimize=True)
        else:
            image.save(buffer, "WEBP", quality=quality, method=6)
        if buffer.tell() <= LARGEST:
            write_bytes(path, buffer.getvalue())
            return
    raise ValueError(f"{path.name} has {buffer.tell():,} bytes at its smallest")
