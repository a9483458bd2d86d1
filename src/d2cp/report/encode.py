"""Pictures as bytes and as data URIs, small enough for one HTML file."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from d2cp.data.images import UnreadableError, decode
from d2cp.errors import RunError

SMALL_SIDE = 64  # below it PNG keeps single pixels crisp and costs no more than JPEG
PICTURE_BYTES = 120_000
MAP_BYTES = 12_000  # a Grad-CAM map is blurred: JPEG does it no harm
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


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A picture ready for the page."""

    data: bytes
    width: int
    height: int

    @property
    def uri(self) -> str:
        return data_uri(self.data)


def picture(path: Path, limit: int = PICTURE_BYTES) -> Picture:
    """A picture file of the run; one heavier than `limit` is made a JPEG and, if wide, shrunk."""
    data = path.read_bytes()
    try:
        image = decode(data)
    except UnreadableError as error:
        raise RunError(
            f"{path} cannot be shown: {error}",
            expected="a picture as d2cp wrote it",
            remedy="delete the stage's folder and run again; other stages are kept",
        ) from error
    if len(data) <= limit:
        return Picture(data=data, width=image.width, height=image.height)
    if image.width > PICTURE_WIDTH:
        height = max(1, round(image.height * PICTURE_WIDTH / image.width))
        image = image.resize((PICTURE_WIDTH, height), Image.Resampling.LANCZOS)
    small = jpeg_bytes(image, 85)
    chosen = small if len(small) < len(data) else data
    return Picture(data=chosen, width=image.width, height=image.height)
