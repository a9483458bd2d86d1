"""Content digests of images, remembered per file version so that a second look is cheap."""

from __future__ import annotations

import csv
import hashlib
import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import TypeVar

from d2cp.core.files import write_csv
from d2cp.data.images import UnreadableError
from d2cp.data.source import EncodedSource, Stamp
from d2cp.errors import RunError

T = TypeVar("T")
SMALL = 64  # rows that a thread is handed where only small answers come back
_HEADER = ("name", "size", "mtime_ns", "ctime_ns", "digest")


def digest_bytes(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def threads() -> int:
    """Decoding and hashing release the interpreter lock, so threads suffice."""
    return min(16, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 4)


def ordered_map(function: Callable[[int], T], rows: Sequence[int], at_once: int = 1) -> Iterator[T]:
    """function(row) in threads, in order, with a bounded number of results waiting: eight rows a
    thread, or twice what it is handed at once (more than a row where that costs little)."""
    parts = (rows[start : start + at_once] for start in range(0, len(rows), at_once))

    def run(part: Sequence[int]) -> list[T]:
        return [function(row) for row in part]

    with ThreadPoolExecutor(threads()) as pool:
        waiting: deque[Future[list[T]]] = deque(
            pool.submit(run, part) for part in islice(parts, max(2, 8 // at_once) * threads())
        )
        try:
            while waiting:
                yield from waiting.popleft().result()
                for part in islice(parts, 1):
                    waiting.append(pool.submit(run, part))
        finally:
            for future in waiting:
                future.cancel()


def row_digests(
    source: EncodedSource,
    cache_dir: Path | None,
    unseen: Callable[[Sequence[int]], Iterator[bytes | str]] | None = None,
) -> tuple[list[bytes | None], dict[int, str]]:
    """A digest for each row, None where the file cannot be read, and the reasons for those. Where
    no file was seen before, `unseen` reads them: each row's digest, or why it has none."""
    index_path = None
    if cache_dir is not None:
        index_path = (
            cache_dir / "digests" / f"{digest_bytes(os.fsencode(source.location)).hex()}.csv"
        )
    known = _read_index(index_path)
    before = len(known)

    stamps, bad = row_stamps(source)
    unknown = [row for row, stamp in stamps.items() if stamp not in known]

    def one(row: int) -> bytes | str:
        try:
            return digest_bytes(source.read(row))
        except UnreadableError as error:
            return str(error)

    first = bool(unknown) and len(unknown) == len(stamps)
    read = unseen(unknown) if first and unseen else ordered_map(one, unknown, SMALL)
    for row, found in zip(unknown, read, strict=True):
        if isinstance(found, str):
            bad[row] = found
        else:
            known[stamps[row]] = found
    if index_path is not None and len(known) > before:
        _write_index(index_path, known)
    digests = [
        None if row in bad or row not in stamps else known[stamps[row]]
        for row in range(len(source))
    ]
    return digests, bad


def row_stamps(source: EncodedSource) -> tuple[dict[int, Stamp], dict[int, str]]:
    """The version of each row's file, and the reasons of those that have none."""
    stamps: dict[int, Stamp] = {}
    bad: dict[int, str] = {}
    for row in range(len(source)):
        try:
            stamps[row] = source.stamp(row)
        except UnreadableError as error:
            bad[row] = str(error)
    return stamps, bad


def _read_index(path: Path | None) -> dict[Stamp, bytes]:
    """A damaged index is not an error: its entries are computed again."""
    if path is None or not path.is_file():
        return {}
    known = {}
    try:
        with path.open(newline="", encoding="utf-8", errors="surrogateescape") as file:
            rows = csv.reader(file)
            if next(rows, []) != [*_HEADER, _checksum(rows)]:
                return {}
            file.seek(0)  # read twice rather than held: a large set has many lines
            for name, *times, digest in islice(csv.reader(file), 1, None):
                known[Stamp(name, *(int(value) for value in times))] = bytes.fromhex(digest)
    except (OSError, ValueError, TypeError, csv.Error):
        return {}
    return known


def _checksum(rows: Iterable[list[str]]) -> str:
    """Of the rows as one JSON list. A digest that was altered, by a hand or a disk, would serve the
    pixels of another image."""
    digest = hashlib.blake2b(b"[", digest_size=16)
    for number, row in enumerate(rows):
        digest.update((", " if number else "").encode() + json.dumps(row).encode())
    digest.update(b"]")
    return digest.hexdigest()


def _write_index(path: Path, known: dict[Stamp, bytes]) -> None:
    latest = {stamp.name: (stamp, digest) for stamp, digest in known.items()}

    def rows() -> Iterator[list[str]]:
        for stamp, digest in latest.values():
            yield [str(part) for part in (*stamp, digest.hex())]

    try:
        write_csv(path, (*_HEADER, _checksum(rows())), rows())
    except (RunError, UnicodeEncodeError):
        return  # only a shortcut for the next time; the cache itself reports an unwritable disk
