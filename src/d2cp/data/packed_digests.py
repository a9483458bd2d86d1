"""Many digests, sixteen bytes each: as Python objects they would cost ten times that."""

from __future__ import annotations

import hashlib
from array import array
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SIZE = 16
Packed = NDArray[np.bytes_]  # of type S16; numpy drops zeros at the end of an item, see `unpacked`


def digest_bytes(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=SIZE).digest()


def packed(data: bytes | bytearray) -> Packed:
    """Digests that stand one behind the other."""
    return np.frombuffer(data, dtype=f"S{SIZE}")


def unpacked(item: bytes) -> bytes:
    return bytes(item).ljust(SIZE, b"\0")


def content_of(digests: Packed) -> str:
    """The identity of a set of images: its distinct digests in order, digested."""
    return digest_bytes(np.unique(digests).tobytes()).hex()


def places_of(wanted: Packed, held: Packed) -> NDArray[np.int64]:
    """Where each wanted digest stands among those held, -1 where it does not."""
    if not len(held):
        return np.full(len(wanted), -1, dtype=np.int64)
    order = np.argsort(held, kind="stable")
    near = np.searchsorted(held, wanted, sorter=order)
    places = order[np.minimum(near, len(held) - 1)]
    places[held[places] != wanted] = -1
    return places


@dataclass(frozen=True)
class RowDigests:
    """The digest of each row's image, or none."""

    values: Packed
    there: NDArray[np.bool_]

    @classmethod
    def of(cls, rows: int) -> RowDigests:
        """None yet, for so many rows."""
        return cls(np.zeros(rows, dtype=f"S{SIZE}"), np.zeros(rows, dtype=bool))

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, row: int) -> bytes | None:
        return unpacked(self.values[row]) if self.there[row] else None

    def __setitem__(self, row: int, digest: bytes) -> None:
        self.values[row], self.there[row] = digest, True

    def first_rows(self) -> NDArray[np.int64]:
        """For each different digest the first row that has it, in the order of the rows."""
        rows = np.flatnonzero(self.there).astype(np.int64)
        _, first = np.unique(self.values[rows], return_index=True)
        return rows[np.sort(first)]

    def repeated(self) -> list[list[int]]:
        """The rows of each digest that several have, by the first of them."""
        rows = np.flatnonzero(self.there).astype(np.int64)
        order = rows[np.argsort(self.values[rows], kind="stable")]
        starts = np.flatnonzero(self.values[order[1:]] != self.values[order[:-1]]) + 1
        edges = np.concatenate([[0], starts, [len(order)]])
        groups = np.flatnonzero(np.diff(edges) > 1)
        return sorted(order[edges[group] : edges[group + 1]].tolist() for group in groups)


class DigestSet:
    """Different digests in the order in which they came, and a table of where each is."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._table = array("I", bytes(4 * 256))  # 0, or the place behind a digest

    def __len__(self) -> int:
        return len(self._held) // SIZE

    def __contains__(self, digest: bytes) -> bool:
        return self._table[self._slot(digest)] > 0

    def add(self, digest: bytes) -> None:
        at = self._slot(digest)
        if self._table[at]:
            return
        self._held += digest
        self._table[at] = len(self)
        if 2 * len(self) > len(self._table):
            self._table = array("I", bytes(8 * len(self._table)))
            for place in range(len(self)):
                self._table[self._slot(self._digest(place))] = place + 1

    def packed(self) -> Packed:
        return packed(bytes(self._held))

    def _digest(self, place: int) -> bytearray:
        return self._held[SIZE * place : SIZE * (place + 1)]

    def _slot(self, digest: bytes | bytearray) -> int:
        """Where the digest stands in the table, or would: at its first bytes or the next free."""
        last = len(self._table) - 1
        at = int.from_bytes(digest[:8], "little") & last
        while (place := self._table[at]) and self._digest(place - 1) != digest:
            at = (at + 1) & last
        return at
