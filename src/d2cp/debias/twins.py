"""Every training image once more, in the colours of the other value.

Row N + i is the twin of row i: its class, the other pseudo value, and XRM's bits as most images of
its new group have them. The sampler then finds all of a class's images in either of its groups
instead of the few that really go against the finding. Validation images have no twins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from d2cp.core.arrays import Bytes, Ints, Rows
from d2cp.data.store import ImageStore
from d2cp.debias.labels import Labels
from d2cp.disentangle.colour_map import ColourMap


class TwinStore(ImageStore):
    """The images of `store`, then their twins: `maps[v]` takes an image from value v to the other,
    `value` is that of each row of `store`."""

    def __init__(
        self, store: ImageStore, value: Ints, maps: Sequence[ColourMap], rows: Rows | None = None
    ) -> None:
        """`rows` are those of images and twins that it holds; all where none are given."""
        self._store, self._value, self._maps = store, value, tuple(maps)
        self._rows: Rows = np.arange(2 * store.n) if rows is None else rows
        self.size, self.key, self.bad = store.size, store.key, store.bad

    @property
    def n(self) -> int:
        return len(self._rows)

    def __getitem__(self, indices: Rows) -> Bytes:
        rows = self._rows[np.asarray(indices, dtype=np.int64)]
        own = rows % self._store.n
        pixels = np.array(self._store[own])
        for value, turned in enumerate(self._maps):
            here = np.flatnonzero((rows >= self._store.n) & (self._value[own] == value))
            pixels[here] = turned(pixels[here])
        return pixels

    def subset(self, indices: Rows) -> TwinStore:
        return TwinStore(self._store, self._value, self._maps, self._rows[indices])


def with_twins(labels: Labels) -> Labels:
    """Labels of a `TwinStore`'s rows; two values."""
    assert labels.a is not None and labels.values == 2
    count, y, a = len(labels.y), np.tile(labels.y, 2), np.concatenate([labels.a, 1 - labels.a])
    twin = replace(
        labels,
        y=y,
        a=a,
        train=np.concatenate([labels.train, labels.train + count]),
        shares=None
        if labels.shares is None
        else np.vstack([labels.shares, labels.shares[:, ::-1]]),
        true_a=None if labels.true_a is None else np.tile(labels.true_a, 2),
    )
    if labels.y_xrm is None or labels.a_xrm is None:
        return twin
    groups = labels.pseudo_groups()
    bits = [
        np.concatenate([bit, usual_bits(bit, groups, labels.train, bit, (2 * y + a)[count:])])
        for bit in (labels.y_xrm, labels.a_xrm)
    ]
    return replace(twin, y_xrm=bits[0], a_xrm=bits[1])


def usual_bits(bit: Ints, groups: Ints, train: Rows, own: Ints, theirs: Ints) -> Ints:
    """Bits of twins in the groups `theirs`: what most training images of their group have, and
    where there are none the other bit than that of their image, `own`."""
    twin = 1 - own
    for group in np.unique(theirs):
        known = bit[train[groups[train] == group]]
        if len(known):
            twin[theirs == group] = int(known.mean() > 0.5)
    return twin
