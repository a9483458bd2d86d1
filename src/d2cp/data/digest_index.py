"""Which version of a file has which digest, in a CSV beside the cache."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TextIO

import numpy as np

from d2cp.core.files import write_csv
from d2cp.data.packed_digests import SIZE, digest_bytes, packed, unpacked
from d2cp.data.source import Stamp
from d2cp.errors import RunError

_HEADER = ("name", "size", "mtime_ns", "ctime_ns", "digest")

Learnt = Callable[[], Iterator[tuple[Stamp, bytes]]]


class DigestIndex:
    """What the file at `path` knows, 32 bytes a line: a digest that stands for the version, and the
    image's. A damaged file is not an error: what it knew is computed again. It stays open, so that
    what is written later is what was verified, whoever replaces it meanwhile."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: TextIO | None = None
        versions, digests = bytearray(), bytearray()
        try:
            if path is not None and path.is_file():
                self._file = path.open(newline="", encoding="utf-8", errors="surrogateescape")
                _verify(self._file)
                for *version, digest in self._lines():
                    versions += _key(*version)
                    digests += _sixteen(bytes.fromhex(digest))
        except (OSError, ValueError, TypeError, csv.Error):
            self.close()
            versions, digests = bytearray(), bytearray()
        order = np.argsort(packed(versions), kind="stable")
        self._versions, self._digests = packed(versions)[order], packed(digests)[order]

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None

    def look_up(self, stamps: Sequence[Stamp]) -> list[bytes | None]:
        """The digest of each version, None where it is not known."""
        if not len(self._versions):
            return [None] * len(stamps)
        wanted = packed(b"".join([_key(*stamp) for stamp in stamps]))
        places = np.searchsorted(self._versions, wanted)
        places = np.minimum(places, len(self._versions) - 1)
        known = self._versions[places] == wanted
        found = self._digests[places].tolist()
        return [unpacked(d) if there else None for d, there in zip(found, known, strict=True)]

    def remember(self, learnt: Learnt) -> None:
        """The file again, with the versions that were learnt in the place of older ones or behind
        them. They are asked for twice: the checksum stands before them."""
        if self._path is None:
            return
        try:
            checksum = _checksum(self._with(learnt))
            write_csv(self._path, (*_HEADER, checksum), self._with(learnt))
        except (RunError, OSError, UnicodeEncodeError):
            return  # only a shortcut for the next time; the cache itself reports an unwritable disk

    def _lines(self) -> Iterator[list[str]]:
        if self._file is not None:
            self._file.seek(0)
            yield from islice(csv.reader(self._file), 1, None)

    def _with(self, learnt: Learnt) -> Iterator[list[str]]:
        newer: dict[str, list[str]] = {}
        if self._file is not None:
            newer = {stamp.name: _line(stamp, digest) for stamp, digest in learnt()}
        for line in self._lines():
            yield newer.pop(line[0], line)
        if self._file is not None:
            yield from newer.values()
        else:
            yield from (_line(stamp, digest) for stamp, digest in learnt())


def _line(stamp: Stamp, digest: bytes) -> list[str]:
    return [str(part) for part in (*stamp, digest.hex())]


def _key(name: str, size: int | str, mtime_ns: int | str, ctime_ns: int | str) -> bytes:
    """Stands for a version: the numbers are in the file as they are printed."""
    text = f"{size} {mtime_ns} {ctime_ns} {name}"
    return digest_bytes(text.encode("utf-8", "surrogatepass"))


def _sixteen(digest: bytes) -> bytes:
    if len(digest) != SIZE:
        raise ValueError("not a digest")
    return digest


def _verify(file: TextIO) -> None:
    """Read once more rather than held: a large set has many lines."""
    rows = csv.reader(file)
    if next(rows, []) != [*_HEADER, _checksum(rows)]:
        raise ValueError("altered")


def _checksum(rows: Iterable[list[str]]) -> str:
    """Of the rows as one JSON list. A digest that was altered, by a hand or a disk, would serve the
    pixels of another image."""
    digest = hashlib.blake2b(b"[", digest_size=16)
    rows, between = iter(rows), ""
    while block := list(islice(rows, 256)):  # one call for each row takes three times as long
        digest.update((between + json.dumps(block)[1:-1]).encode())
        between = ", "
    digest.update(b"]")
    return digest.hexdigest()
