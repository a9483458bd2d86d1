"""What a person hands to a classifier, as RGB pictures: one way for EXIF, alpha and depth, whether
it comes as a file, as bytes, as a Pillow image or as an array."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from d2cp.data.images import MAX_BYTES, UnreadableError, decode, rgb
from d2cp.errors import DataError

ImageLike = str | Path | bytes | Image.Image | NDArray[Any]
EXPECTED = (
    "a file, its bytes, a Pillow image or an array [H, W], [H, W, 1], [H, W, 3] or [H, W, 4] of "
    "uint8, uint16 or floats from 0 to 1 (or 255); or a list of these, or an array [N, H, W, C]"
)


def listed(images: Any) -> list[Any]:
    """One image, or many, as a list."""
    if isinstance(images, (str, Path, bytes, bytearray, Image.Image)) or images is None:
        return [images]
    if _is_tensor(images) or isinstance(images, np.ndarray):
        values = _array(images)
        if values.ndim == 4:
            return list(values)
        return list(values) if values.dtype.kind in "OUS" else [values]
    if isinstance(images, Iterable):
        return list(images)
    raise DataError(f"an image of type {type(images).__name__}", expected=EXPECTED)


def picture(image: Any, place: str = "image") -> Image.Image:
    """An upright RGB image; what cannot be one is a DataError that names its `place`."""
    try:
        if isinstance(image, (str, Path)):
            return decode(read_file(Path(image)))
        if isinstance(image, (bytes, bytearray)):
            return decode(bytes(image))
        if isinstance(image, Image.Image):
            return rgb(image)
        if _is_tensor(image) or isinstance(image, np.ndarray):
            return _from_array(_array(image))
    except UnreadableError as error:
        name = f"{place} ({image})" if isinstance(image, (str, Path)) else place
        raise DataError(f"{name} cannot be read: {error}", expected=EXPECTED) from None
    raise DataError(f"{place} is of type {type(image).__name__}", expected=EXPECTED)


def read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise UnreadableError(getattr(error, "strerror", None) or str(error)) from None


def _is_tensor(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "detach")


def _array(value: Any) -> NDArray[Any]:
    """A tensor holds its channels first, as torch has them: they go last."""
    if isinstance(value, np.ndarray):
        return value
    found = np.asarray(value.detach().cpu().numpy())
    if found.ndim >= 3 and found.shape[-3] in (1, 3, 4) and found.shape[-1] not in (1, 3, 4):
        return np.moveaxis(found, -3, -1)
    return found


def _from_array(values: NDArray[Any]) -> Image.Image:
    if values.ndim == 3 and values.shape[-1] == 1:
        values = values[..., 0]
    coloured = values.ndim == 3 and values.shape[-1] in (3, 4)
    if not (values.ndim == 2 or coloured) or values.size == 0:
        raise UnreadableError(f"an array of shape {values.shape}")
    return rgb(Image.fromarray(_bytes(values)))


def _bytes(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Eight bits, scaled as `d2cp.data.images` scales files."""
    if values.dtype == np.uint8:
        return np.ascontiguousarray(values)
    if values.dtype == np.uint16:
        return ((values.astype(np.int64) + 128) // 257).astype(np.uint8)
    if values.dtype.kind == "f":
        if not np.isfinite(values).all() or values.min() < 0 or values.max() > 255:
            raise UnreadableError("floats outside 0 … 255, or not finite")
        scale = 255 if values.max() <= 1 else 1
        return np.rint(values.astype(np.float64) * scale).astype(np.uint8)
    raise UnreadableError(f"an array of {values.dtype}")
