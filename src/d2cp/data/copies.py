"""Copies of one picture in another size or encoding, found by their thumbnails.

A thumbnail is the 16 × 16 centre square. Two pictures are copies when their thumbnails, freed of
brightness and contrast, correlate by `CORRELATION` or more and differ little in brightness. On
photographs of birds this finds 97% of copies shrunk to a third and saved as poor JPEGs, and takes
no two different photographs for one. Flat pictures have no features to compare and are left out.
Where all pictures are alike, as written ones are, near is not enough: a copy is also much nearer
than its other neighbours.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from d2cp.data.images import to_square
from d2cp.data.store import ImageStore
from d2cp.data.table import Table

SIDE = 16
BLOCK = 4  # thumbnails are first compared by their means over blocks of this side
CORRELATION = 0.992
BRIGHTNESS = 8.0  # of 255
FLAT = 4.0  # deviation of the pixels, of 255
NEIGHBOURS = 4  # candidates that are looked at closely
CROWD = 8  # a copy's distance is at most
NEARER = 0.5  # this share of that to its eighth neighbour
SAME = 0.02  # a distance at which that is not asked: rounding


def thumbnail(image: Image.Image) -> NDArray[np.uint8]:
    """[16, 16, 3]: a whole number of bytes that says what is where."""
    return to_square(image, SIDE)


def thumbnails(store: ImageStore, batch: int = 512) -> NDArray[np.uint8]:
    """[N, 16, 16, 3] of images at working size."""
    made = np.zeros((len(store), SIDE, SIDE, 3), dtype=np.uint8)
    for start in range(0, len(store), batch):
        rows = np.arange(start, min(start + batch, len(store)), dtype=np.int64)
        for row, pixels in zip(rows, store[rows], strict=True):
            made[row] = thumbnail(Image.fromarray(pixels))
    return made


def copies_of(known: NDArray[np.uint8], asked: NDArray[np.uint8]) -> list[tuple[int, int]]:
    """(row of `asked`, row of `known`) for each asked thumbnail that copies a known one."""
    from scipy.spatial import cKDTree

    ours, our_rows, our_means = _directions(known)
    theirs, their_rows, their_means = _directions(asked)
    if not len(ours) or not len(theirs):
        return []
    # Block means only shorten distances, so that no copy is beyond the radius.
    radius = float(np.sqrt(2 - 2 * CORRELATION))
    tree = cKDTree(_coarse(ours))
    _, near = tree.query(_coarse(theirs), k=NEIGHBOURS, distance_upper_bound=radius)
    found = []
    for row, listed in enumerate(near):
        others = listed[listed < len(ours)]
        if not len(others):
            continue
        apart = np.linalg.norm(theirs[row] - ours[others], axis=1)
        least, other = float(apart.min()), int(others[apart.argmin()])
        alike = abs(their_means[row] - our_means[other]) <= BRIGHTNESS
        if least <= radius and alike and least <= max(SAME, NEARER * _crowd(ours, theirs[row])):
            found.append((int(their_rows[row]), int(our_rows[other])))
    return found


def across_splits(
    pictures: NDArray[np.uint8], rows: NDArray[np.int64], table: Table
) -> list[tuple[int, int]]:
    """(row, the row of an earlier split that it copies): validation and test images that copy
    training ones, and test images that copy validation ones. `pictures[i]` is row `rows[i]`."""
    split = np.minimum(table.split[rows], 2)  # the balanced test set is made of the test set
    found: dict[int, int] = {}
    for code in (0, 1):
        known, asked = np.flatnonzero(split == code), np.flatnonzero(split > code)
        for place, other in copies_of(pictures[known], pictures[asked]):
            found.setdefault(int(rows[asked[place]]), int(rows[known[other]]))
    return sorted(found.items())


def _crowd(directions: NDArray[np.float32], one: NDArray[np.float32]) -> float:
    """The distance to the eighth nearest; among fewer there is no crowd."""
    if len(directions) < CROWD:
        return np.inf
    squares = 2 - 2 * (directions @ one)
    return float(np.sqrt(max(np.partition(squares, CROWD - 1)[CROWD - 1], 0)))


def _directions(
    pictures: NDArray[np.uint8],
) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float32]]:
    """Unit vectors of the thumbnails that are not flat, their rows, and their brightness."""
    flat = pictures.reshape(len(pictures), 3 * SIDE**2)
    rows = np.flatnonzero(flat.std(axis=1, dtype=np.float32) >= FLAT).astype(np.int64)
    vectors = flat[rows].astype(np.float32)
    means = vectors.mean(axis=1)
    vectors -= means[:, None]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors, rows, means


def _coarse(directions: NDArray[np.float32]) -> NDArray[np.float32]:
    """Means over blocks, scaled so that distances never grow."""
    n, blocks = len(directions), SIDE // BLOCK
    split = directions.reshape(n, blocks, BLOCK, blocks, BLOCK, 3)
    coarse: NDArray[np.float32] = BLOCK * split.mean(axis=(2, 4)).reshape(n, -1)
    return coarse
