"""From glyph bitmaps to distance fields: a field can be redrawn with any pen at any size.

Type faces draw strokes of two widths with serifs, a pen draws one width. Thinning a glyph to its
skeleton and keeping the distance to it lets the augmentation choose the pen on the fly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt

UNITS_PER_PIXEL = 8.0
"""Distances are kept as uint8 in eighths of a bank pixel."""


def thin(ink: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Zhang-Suen thinning of a batch of bitmaps [N, H, W] (two alternating peeling passes)."""
    image = np.pad(ink, ((0, 0), (1, 1), (1, 1)))
    active = np.arange(len(image))
    while len(active):
        part = image[active]
        changed = np.zeros(len(active), dtype=bool)
        for first in (True, False):
            peel = _peelable(part, first)
            part[:, 1:-1, 1:-1] &= ~peel
            changed |= peel.any(axis=(1, 2))
        image[active] = part
        active = active[changed]
    skeleton: NDArray[np.bool_] = image[:, 1:-1, 1:-1]
    return skeleton


def _peelable(image: NDArray[np.bool_], first: bool) -> NDArray[np.bool_]:
    """Border pixels whose removal keeps the stroke connected and its ends in place."""
    h, w = image.shape[1] - 2, image.shape[2] - 2
    # The eight neighbours clockwise from north.
    offsets = ((0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (2, 0), (1, 0), (0, 0))
    ring = [image[:, y : y + h, x : x + w] for y, x in offsets]
    count = np.zeros(ring[0].shape, dtype=np.uint8)
    turns = np.zeros_like(count)
    for here, after in zip(ring, ring[1:] + ring[:1], strict=True):
        count += here
        turns += ~here & after
    north, east, south, west = ring[0], ring[2], ring[4], ring[6]
    if first:
        side = ~(north & east & south) & ~(east & south & west)
    else:
        side = ~(north & east & west) & ~(north & south & west)
    peel: NDArray[np.bool_] = (
        image[:, 1:-1, 1:-1] & (count >= 2) & (count <= 6) & (turns == 1) & side
    )
    return peel


def distance_to(ink: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Distance of every pixel to the nearest ink of its own bitmap [N, H, W]."""
    fields = np.empty(ink.shape, dtype=np.uint8)
    for field, bitmap in zip(fields, ink, strict=True):
        distance = distance_transform_edt(~bitmap) * UNITS_PER_PIXEL
        field[:] = np.clip(np.rint(distance), 0, 255).astype(np.uint8)
    return fields
