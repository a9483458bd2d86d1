"""Images at working size, addressed by table row."""

from __future__ import annotations

import hashlib
import mmap
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2cp.core.locks import Use
from d2cp.data.cache_room import MANIFEST
from d2cp.data.source import ColouredSource
from d2cp.data.table import SPLIT_NAMES, Table
from d2cp.errors import DataError

# How much of a cache a process keeps mapped: its memory stays flat as data sets grow.
RESIDENT_BYTES = 128 * 2**20


class ImageStore(ABC):
    """`store[rows]` is uint8 [B, size, size, 3]; row i of the store is row i of its table.

    `bad` maps a quarantined row to its reason (reading such a row is an error); `key` is the
    identity of the pixels: content and settings.
    """

    size: int
    key: str
    bad: dict[int, str]

    @property
    @abstractmethod
    def n(self) -> int: ...

    def __len__(self) -> int:
        return self.n

    @abstractmethod
    def __getitem__(self, indices: NDArray[np.int64]) -> NDArray[np.uint8]: ...

    @abstractmethod
    def subset(self, indices: NDArray[np.int64]) -> ImageStore: ...

    def good_rows(self) -> NDArray[np.int64]:
        good = np.ones(self.n, dtype=bool)
        good[list(self.bad)] = False
        return np.flatnonzero(good).astype(np.int64)


class ArrayStore(ImageStore):
    """Coloured images at their native size: made for the rows asked for, nothing to cache."""

    def __init__(self, source: ColouredSource) -> None:
        self._source = source
        self.size = source.side
        self.key = source.identity()
        self.bad = {}

    @property
    def n(self) -> int:
        return len(self._source)

    def __getitem__(self, indices: NDArray[np.int64]) -> NDArray[np.uint8]:
        return self._source.pixels(np.asarray(indices, dtype=np.int64))

    def subset(self, indices: NDArray[np.int64]) -> ArrayStore:
        return ArrayStore(self._source.subset(np.asarray(indices, dtype=np.int64)))


class MemmapStore(ImageStore):
    """Rows of a cache entry. Copies of the store in other processes map the same file."""

    def __init__(
        self, pixels: Path, size: int, slots: NDArray[np.int64], bad: dict[int, str], entry: str
    ) -> None:
        self._path, self.size, self._slots, self.bad = pixels, size, slots, bad
        self._entry = entry
        self.key = hashlib.blake2b(
            entry.encode() + slots.astype("<i8").tobytes(), digest_size=16
        ).hexdigest()
        self._open()

    def _open(self) -> None:
        self._use = Use(self._path.parent / MANIFEST)
        with self._path.open("rb") as file:
            self._file = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        flat = np.frombuffer(self._file, dtype=np.uint8)
        self._map: NDArray[np.uint8] = flat.reshape(-1, self.size, self.size, 3)
        self._touched = 0

    @property
    def n(self) -> int:
        return len(self._slots)

    @property
    def folder(self) -> Path:
        """Where the cache entry and its quarantine.csv lie."""
        return self._path.parent

    def __getitem__(self, indices: NDArray[np.int64]) -> NDArray[np.uint8]:
        rows = np.asarray(indices, dtype=np.int64)
        slots = self._slots[rows]
        if (slots < 0).any():
            row = int(rows[slots < 0][0])
            raise DataError(
                f"row {row} is in quarantine: {self.bad.get(row % self.n, 'unreadable')}",
                remedy="drop quarantined rows with d2cp.data.usable(table, store)",
            )
        pixels = self._map[slots]
        self._touched += pixels.nbytes
        if self._touched > RESIDENT_BYTES and hasattr(mmap, "MADV_DONTNEED"):
            # Unmaps pages read so far; the system's file cache keeps them as long as it has room.
            self._file.madvise(mmap.MADV_DONTNEED)
            self._touched = 0
        return pixels

    def subset(self, indices: NDArray[np.int64]) -> MemmapStore:
        index = np.asarray(indices, dtype=np.int64)
        bad = {new: self.bad[int(old)] for new, old in enumerate(index) if int(old) in self.bad}
        return MemmapStore(self._path, self.size, self._slots[index], bad, self._entry)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("_map", "_file", "_use")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()


def usable(table: Table, store: ImageStore) -> Table:
    """The table without quarantined rows; the store that goes with it is
    `store.subset(store.good_rows())`, or use `d2cp.data.load_images`, which returns both."""
    if len(table) != store.n:
        raise ValueError("this store belongs to another table")
    return table.subset(store.good_rows()) if store.bad else table


def quarantine(table: Table, bad: dict[int, str]) -> list[dict[str, str]]:
    """One record a quarantined row: id, class, split, reason."""
    return [
        {
            "id": str(table.ids[row]),
            "class": table.class_names[table.y[row]],
            "split": SPLIT_NAMES[table.split[row]],
            "reason": reason,
        }
        for row, reason in sorted(bad.items())
    ]
