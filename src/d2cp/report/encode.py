"""Pictures as bytes and as data URIs, small enough for one HTML file."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

SMALL_SIDE = 64  # below it PNG keeps single pixels crisp and costs no more than JPEG
PICTURE_BYTES = 180_000
PICTURE_WIDTH = 1200


def png_bytes(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def jpeg_bytes(image: Image.Image, quality: int = 80) -> bytes:
    buffer = io.BytesIO()
    image.convert("RGB").save(buffer, "JPEG", quality=quality, optimize=True, progressive=True)
    return buffer.getvalue()


def data_uri(data: bytes) -> str:
    kind = "png" if data.startswith(b"\x89PNG") else "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"


def thumbnail(pixels: NDArray[np.uint8]) -> bytes:
    """One image [H, W, 3], encoded."""
    image = Image.fromarray(pixels)
    return png_bytes(image) if max(image.size) <= SMALL_SIDE else jpeg_bytes(image)


def picture(path: Path) -> tuple[bytes, tuple[int, int]]:
    """A picture file of the run and its size; a heavy one is shrunk and made a JPEG."""
    data = path.read_bytes()
    with Image.open(io.BytesIO(data), formats=("PNG", "JPEG")) as file:
        image = file.copy()
    if len(data) <= PICTURE_BYTES:
        return data, image.size
    if image.width > PICTURE_WIDTH:
        height = max(1, round(image.height * PICTURE_WIDTH / image.width))
        image = image.resize((PICTURE_WIDTH, height), Image.Resampling.LANCZOS)
    small = jpeg_bytes(image, 85)
    return (small if len(small) < len(data) else data), image.size
