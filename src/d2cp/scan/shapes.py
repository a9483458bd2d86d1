"""Pictures as people know them: a scan looks at squares, and shows the shape that the file has."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from d2cp.core.arrays import Bytes
from d2cp.data.images import FORMATS
from d2cp.data.source import EncodedSource
from d2cp.data.table import Table

WIDEST = 4.0
"""Width to height beyond which a picture is shown no wider, and the same for tall ones."""
_ORIENTATION = 274
_LYING = (5, 6, 7, 8)
"""Values of EXIF's orientation by which width and height change places."""


def aspect(table: Table, row: int) -> float:
    """Width to height of a row's picture, from the header of its file; 1 where that says nothing or
    a square is cut out first."""
    source = table.source
    if not isinstance(source, EncodedSource) or source.centre_crop is not None:
        return 1.0
    try:
        with Image.open(io.BytesIO(source.read(row)), formats=FORMATS) as image:
            width, height = image.size
            if image.getexif().get(_ORIENTATION) in _LYING:
                width, height = height, width
    except Exception:  # hostile bytes meet many exception types, and the data set may be gone
        return 1.0
    return min(WIDEST, max(1 / WIDEST, width / max(1, height)))


def unstretched(square: Bytes, ratio: float) -> Bytes:
    """A square [S, S, 3] in the shape of width to height `ratio`, its longer side S."""
    side = len(square)
    width, height = (max(1, round(side * min(1.0, x))) for x in (ratio, 1 / ratio))
    if (width, height) == (side, side):
        return square
    made = Image.fromarray(square).resize((width, height), Image.Resampling.BICUBIC)
    return np.asarray(made)
