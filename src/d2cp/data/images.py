"""Safe decoding: bytes of unknown origin → an RGB image, or a reason why not.

Decisions: 16-bit grey is scaled, not clipped; transparency is laid on white; the orientation that
the camera recorded is applied; an image of several frames is refused, since none of them is *the*
image (a camera's MPO file has a main picture, which is taken); a side of one pixel is refused.
A file that ends early is refused: decoders can fill the rest with grey, which would be a shortcut
of our own making.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from d2cp.data.decode_budget import BYTES_PER_PIXEL, MAX_PIXELS, POOL, too_costly

MAX_BYTES = 64 * 2**20
# An allow-list: Pillow's other plugins include some that start external programs.
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "PPM")
EXTENSIONS = frozenset(
    {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".ppm"}
    | {".pgm", ".pbm"}
)
RESAMPLING = Image.Resampling.BILINEAR  # Pillow widens the filter when it shrinks: antialiased.
DECODER_VERSION = 1  # part of the cache key: raise it when decoded pixels change

BAND_PIXELS = 2**20
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
            return _rgb(image, data, own=True)
    except UnidentifiedImageError:
        raise UnreadableError(_unidentified(data)) from None
    except Exception as error:
        raise _reason(error) from None


def rgb(image: Image.Image) -> Image.Image:
    """An open image as `decode` would have made it from its file: upright, RGB, nothing clipped."""
    try:
        return _rgb(image, b"", own=False)
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


def _check_header(image: Image.Image, data: bytes) -> None:
    width, height = image.size
    if min(width, height) < 2:
        raise UnreadableError(f"only {width}×{height} pixels")
    if reason := too_costly(image, data):
        raise UnreadableError(reason)
    # Not n_frames, which walks through all of them: a file can hold 40,000.
    if image.format != "MPO" and getattr(image, "is_animated", False):
        raise UnreadableError("several frames or pages")


def _rgb(image: Image.Image, data: bytes, *, own: bool) -> Image.Image:
    _check_header(image, data)
    with POOL.hold(image.width * image.height * BYTES_PER_PIXEL):
        image.load()  # verify() would pass a file that is cut in half
        return to_rgb(_upright(image, own))


def _reason(error: Exception) -> UnreadableError:
    """Pillow's plugins meet hostile bytes with many exception types (struct, zlib, Key, Index…)."""
    if isinstance(error, UnreadableError):
        return error
    if isinstance(error, Image.DecompressionBombError):
        return UnreadableError(f"more than {MAX_PIXELS} pixels")
    if isinstance(error, MemoryError):
        return UnreadableError("not enough memory to decode")
    return UnreadableError(f"damaged: {str(error) or type(error).__name__}"[:200])


def _upright(image: Image.Image, own: bool) -> Image.Image:
    """A caller's image is left as it is; our own need not be held twice."""
    # Metadata that cannot be parsed says nothing about orientation.
    with contextlib.suppress(Exception):
        if not own:
            return ImageOps.exif_transpose(image)
        ImageOps.exif_transpose(image, in_place=True)
    return image


def to_rgb(image: Image.Image) -> Image.Image:
    """Any mode as RGB; in bands of rows, so that a large image is held twice and not five times."""
    mode = image.mode
    convert: Callable[[Image.Image], Image.Image]
    if mode == "RGB" and "transparency" not in image.info:
        return image
    # Deep modes first: Pillow's own conversions clip them.
    if mode.startswith("I"):
        convert = _integers
    elif mode == "F":
        convert = partial(_floats, scale=_float_scale(image))
    elif mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        convert = _on_white
    elif mode in _PLAIN:
        convert = _converted
    else:
        raise UnreadableError(f"pixel mode {mode} is not supported")
    whole = Image.new("RGB", image.size)
    for top, band in _bands(image):
        whole.paste(convert(band), (0, top))
    return whole


def _bands(image: Image.Image) -> Iterator[tuple[int, Image.Image]]:
    rows = max(1, BAND_PIXELS // image.width)
    for top in range(0, image.height, rows):
        yield top, image.crop((0, top, image.width, min(top + rows, image.height)))


def _converted(image: Image.Image) -> Image.Image:
    return image.convert("RGB")


def _on_white(image: Image.Image) -> Image.Image:
    rgba = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", rgba.size, "white"), rgba).convert("RGB")


def _integers(image: Image.Image) -> Image.Image:
    values = np.asarray(image).astype(np.int64)
    if values.min() < 0 or values.max() > 65535:
        raise UnreadableError("integer pixels outside 0…65535")
    return _grey((values + 128) // 257)


def _float_scale(image: Image.Image) -> int:
    """Floats are read as 0…1, or as 0…255 where any exceeds 1."""
    highest = 0.0
    for _, band in _bands(image):
        values = np.asarray(band, dtype=np.float64)
        if not np.isfinite(values).all():
            raise UnreadableError("pixels that are not finite")
        if values.min() < 0 or values.max() > 255:
            raise UnreadableError("float pixels outside 0…255")
        highest = max(highest, float(values.max()))
    return 255 if highest <= 1 else 1


def _floats(image: Image.Image, scale: int) -> Image.Image:
    return _grey(np.rint(np.asarray(image, dtype=np.float64) * scale))


def _grey(values: NDArray[np.int64] | NDArray[np.float64]) -> Image.Image:
    return Image.fromarray(values.astype(np.uint8)).convert("RGB")


def _unidentified(data: bytes) -> str:
    start = data[:512].lstrip().lower()
    if start.startswith((b"<!doctype", b"<html", b"<?xml", b"<head", b"<svg")):
        return "a web page or XML, not an image"
    return "not an image in a supported format"
