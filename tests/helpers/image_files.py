"""Small real image files in every state that people have them."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

Tree = Callable[[dict[str, bytes]], Path]


def encode(image: Image.Image, format: str = "PNG", **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format, **options)
    return buffer.getvalue()


def picture(seed: int, width: int = 20, height: int = 16) -> Image.Image:
    """Smooth and different for each seed."""
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 256, (3, 4, 3), dtype=np.uint8)
    return Image.fromarray(small).resize((width, height), Image.Resampling.BILINEAR)


def csv_set(n: int = 24, extra: dict[str, bytes] | None = None) -> dict[str, bytes]:
    """n pictures in two classes and three splits, with attributes, behind a metadata.csv."""
    files = {f"img/{i:02d}.png": encode(picture(i)) for i in range(n)}
    lines = ["filename,split,y,a"]
    lines += [f"img/{i:02d}.png,{i % 3},{(i // 3) % 2},{i % 2}" for i in range(n)]
    return {**files, "metadata.csv": ("\n".join(lines) + "\n").encode(), **(extra or {})}
