"""Twins in the other value's colours: rows, groups, bits, and what the sampler then draws."""

from __future__ import annotations

import numpy as np

from d2cp.data.store import ImageStore
from d2cp.debias.labels import Labels
from d2cp.debias.sampler import sample_weights
from d2cp.debias.twins import TwinStore, with_twins
from d2cp.disentangle.colour_map import ColourMap

SWAP = ColourMap(np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, 1]]), np.zeros(3), 1.0)
SAME = ColourMap(np.eye(3), np.zeros(3), 1.0)


class Pixels(ImageStore):
    def __init__(self, pixels: np.ndarray) -> None:
        self._pixels, self.size, self.key, self.bad = pixels, pixels.shape[1], "", {}

    @property
    def n(self) -> int:
        return len(self._pixels)

    def __getitem__(self, indices: np.ndarray) -> np.ndarray:
        return self._pixels[indices]

    def subset(self, indices: np.ndarray) -> ImageStore:
        return Pixels(self._pixels[indices])


def labels() -> Labels:
    """Ten of each class, two of them against the finding; rows 20 to 23 are validation."""
    y = np.array([0] * 10 + [1] * 10 + [0, 0, 1, 1])
    a = np.array([0] * 8 + [1] * 2 + [1] * 8 + [0] * 2 + [0, 1, 0, 1])
    against = (y != a).astype(np.int64)
    return Labels(
        y=y,
        classes=2,
        train=np.arange(20),
        val=np.arange(20, 24),
        a=a,
        y_xrm=against,
        a_xrm=against,
    )


def test_a_twin_has_its_images_pixels_in_the_other_colours() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (24, 4, 4, 3)).astype(np.uint8)
    store = TwinStore(Pixels(pixels), labels().a, (SWAP, SAME))
    assert len(store) == 48
    rows = np.array([30, 3, 27, 8, 32, 0])
    found = store[rows]
    for row, image in zip(rows, found, strict=True):
        own = pixels[row % 24]
        swapped = row >= 24 and labels().a[row % 24] == 0
        assert (image == (own[..., [1, 0, 2]] if swapped else own)).all()
    assert (store.subset(rows)[np.arange(6)] == found).all() and len(store.subset(rows)) == 6
    assert (store[np.arange(24)] == pixels).all()  # nothing was written into the images


def test_a_twin_belongs_to_the_other_group_of_its_class() -> None:
    plain, twin = labels(), with_twins(labels())
    assert twin.train.tolist() == [*range(20), *range(24, 44)] and (twin.val == plain.val).all()
    assert (twin.y[24:] == plain.y).all() and (twin.a[24:] == 1 - plain.a).all()
    groups = twin.pseudo_groups()
    assert np.bincount(groups[plain.train]).tolist() == [8, 2, 2, 8]
    assert np.bincount(groups[twin.train]).tolist() == [10, 10, 10, 10]
    assert len(set(sample_weights(groups[twin.train], 1.2))) == 1
    assert (twin.y_xrm[24:44] == (twin.y != twin.a)[24:44]).all()  # as most of its new group
    assert (twin.y_xrm[:24] == plain.y_xrm).all()


def test_where_nobody_goes_against_the_finding_a_twin_has_the_other_bit() -> None:
    y = np.array([0, 0, 1, 1])
    bit = np.zeros(4, np.int64)
    one = Labels(y=y, classes=2, train=np.arange(4), val=y[:0], a=y, y_xrm=bit, a_xrm=bit)
    assert with_twins(one).y_xrm.tolist() == [0] * 4 + [1] * 4
