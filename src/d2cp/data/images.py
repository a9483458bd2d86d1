"""Safe decoding: bytes of unknown origin → an RGB image, or a reason why not.

Decisions: 16-bit grey is scaled, not clipped; transparency is laid on white; the orientation that
the camera recorded is applied; an image of several frames is refused, since none of them is *the*
image (a camera's MPO file has a main picture, which is taken); a side of one pixel is refused.
A file that ends early is refused: decoders can fill the rest with grey, which would be a shortcut
of our own making.
"""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

MAX_BYTES = 64 * 2**20
MAX_PIXELS = 64 * 2**20
# An allow-list: Pillow's other plugins include some that start external programs.
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "PPM")
EXTENSIONS = frozenset(
    {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".ppm"}
    | {".pgm", ".pbm"}
)
RESAMPLING = Image.Resampling.BILINEAR  # Pillow widens the filter when it shrinks: antialiased.
DECODER_VERSION = 1  # part of the cache key: raise it when decoded pixels change

_PLAIN = frozenset({"RGB", "L", "1", "P", "CMYK", "YCbCr", "RGBX", "HSV"})


class UnreadableError(Exception):
    """Why an image is put in quarantine."""


def decode(data: bytes) -> Image.Image:
    """An RGB image; raises UnreadableError with a short reason, whatever the bytes are."""
    if not data:
        raise UnreadableError("empty file")
    if len(data) > MAX_BYTES:
        raise UnreadableError(f"larger than {MAX_BYTES} bytes")
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            return _rgb(image)
    except UnidentifiedImageError:
        raise UnreadableError(_unidentified(data)) from None
    except Exception as error:
        raise _reason(error) from None


def rgb(image: Image.Image) -> Image.Image:
    """An open image as `decode` would have made it from its file: upright, RGB, nothing clipped."""
    try:
        return _rgb(image)
    except Exception as error:
        raise _reason(error) from None


def to_square(
    image: Image.Image, size: int, *, resize: str = "cover", centre_crop: int | None = None
) -> NDArray[np.uint8]:
    """[size, size, 3]. "cover": short side to `size`, then centre crop; "stretch": both sides to
    `size`. An image that already has the size is passed through."""
    if centre_crop is not None:
        width, height = min(centre_crop, image.width), min(centre_crop, image.height)
        left, top = (image.width - width) // 2, (image.height - height) // 2
        image = image.crop((left, top, left + width, top + height))
    if image.size != (size, size):
        box = None
        if resize == "cover":
            # Only the middle square is resized: the same picture as after a crop, without the
            # huge strip that resizing a 2×30000 image first would make.
            side = min(image.size)
            x, y = (image.width - side) / 2, (image.height - side) / 2
            box = (x, y, x + side, y + side)
        image = image.resize((size, size), RESAMPLING, box=box)
    return np.asarray(image, dtype=np.uint8)


def _check_header(image: Image.Image) -> None:
    width, height = image.size
    if min(width, height) < 2:
        raise UnreadableError(f"only {width}×{height} pixels")
    if width * height > MAX_PIXELS:
        raise UnreadableError(f"more than {MAX_PIXELS} pixels ({width}×{height})")
    if image.format != "MPO" and getattr(image, "n_frames", 1) > 1:
        raise UnreadableError("several frames or pages")


def _rgb(image: Image.Image) -> Image.Image:
    _check_header(image)
    image.load()  # verify() would pass a file that is cut in half
    return _to_rgb(_upright(image))


def _reason(error: Exception) -> UnreadableError:
    """Pillow's plugins meet hostile bytes with many exception types (struct, zlib, Key, Index…)."""
    if isinstance(error, UnreadableError):
        return error
    if isinstance(error, Image.DecompressionBombError):
        return UnreadableError(f"more than {MAX_PIXELS} pixels")
    if isinstance(error, MemoryError):
        return UnreadableError("not enough memory to decode")
    return UnreadableError(f"damaged: {str(error) or type(error).__name__}"[:200])


def _upright(image: Image.Image) -> Image.Image:
    try:
        return ImageOps.exif_transpose(image)
    except Exception:  # metadata that cannot be parsed says nothing about orientation
        return image


def _to_rgb(image: Image.Image) -> Image.Image:
    mode = image.mode
    # Deep modes first: Pillow's own conversions clip them.
    if mode.startswith("I"):
        values = np.asarray(image).astype(np.int64)
        if values.min() < 0 or values.max() > 65535:
            raise UnreadableError("integer pixels outside 0…65535")
        return _grey((values + 128) // 257)
    if mode == "F":
        return _grey(_float_values(np.asarray(image, dtype=np.float64)))
    if mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        rgba = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", rgba.size, "white"), rgba).convert("RGB")
    if mode not in _PLAIN:
        raise UnreadableError(f"pixel mode {mode} is not supported")
    return image.convert("RGB")


def _float_values(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Floats are read as 0…1, or as 0…255 where they exceed 1."""
    if not np.isfinite(values).all():
        raise UnreadableError("pixels that are not finite")
    if values.min() < 0 or values.max() > 255:
        raise UnreadableError("float pixels outside 0…255")
    return np.rint(values * (255 if values.max() <= 1 else 1))


def _grey(values: NDArray[np.int64] | NDArray[np.float64]) -> Image.Image:
    return Image.fromarray(values.astype(np.uint8)).convert("RGB")


def _unidentified(data: bytes) -> str:
    start = data[:512].lstrip().lower()
    if start.startswith((b"<!doctype", b"<html", b"<?xml", b"<head", b"<svg")):
        return "a web page or XML, not an image"
    return "not an image in a supported format"
