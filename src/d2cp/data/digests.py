"""Content digests of images, remembered per file version so that a second look is cheap."""

from __future__ import annotations

import os
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TypeVar

from d2cp.data.digest_index import DigestIndex
from d2cp.data.images import UnreadableError
from d2cp.data.packed_digests import RowDigests, digest_bytes
from d2cp.data.source import EncodedSource, Stamp
from d2cp.data.texts import Texts

T = TypeVar("T")
SMALL = 64  # rows that a thread is handed where only small answers come back
AT_ONCE = 1024  # rows whose versions are in memory


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
) -> tuple[RowDigests, dict[int, str]]:
    """A digest for each row, none where the file cannot be read, and the reasons for those. Where
    no file was seen before, `unseen` reads them: each row's digest, or why it has none."""
    path = None
    if cache_dir is not None:
        path = cache_dir / "digests" / f"{digest_bytes(os.fsencode(source.location)).hex()}.csv"
    with closing(DigestIndex(path)) as index:
        digests, bad = RowDigests.of(len(source)), dict[int, str]()
        unknown, names, numbers = array("q"), Texts(), Texts()
        for stamps in _stamps(source, bad):
            known = index.look_up(list(stamps.values()))
            for (row, stamp), digest in zip(stamps.items(), known, strict=True):
                if digest is not None:
                    digests[row] = digest
                    continue
                unknown.append(row)
                names.append(stamp.name)
                numbers.append(" ".join(map(str, stamp[1:])))

        def one(row: int) -> bytes | str:
            try:
                return digest_bytes(source.read(row))
            except UnreadableError as error:
                return str(error)

        def learnt() -> Iterator[tuple[Stamp, bytes]]:
            for row, name, listed in zip(unknown, names, numbers, strict=True):
                if (digest := digests[row]) is not None:
                    yield Stamp(name, *map(int, listed.split())), digest

        first = len(unknown) == len(source) - len(bad)
        read = unseen(unknown) if unknown and first and unseen else ordered_map(one, unknown, SMALL)
        for row, found in zip(unknown, read, strict=True):
            if isinstance(found, str):
                bad[row] = found
            else:
                digests[row] = found
        if digests.there[unknown].any():
            index.remember(learnt)
    return digests, bad


def _stamps(source: EncodedSource, bad: dict[int, str]) -> Iterator[dict[int, Stamp]]:
    """The version of each row's file, some rows at a time; reasons of those that have none."""
    for start in range(0, len(source), AT_ONCE):
        stamps: dict[int, Stamp] = {}
        for row in range(start, min(start + AT_ONCE, len(source))):
            try:
                stamps[row] = source.stamp(row)
            except UnreadableError as error:
                bad[row] = str(error)
        yield stamps


def present_rows(source: EncodedSource) -> tuple[Sequence[int], dict[int, str]]:
    """Rows whose file is there to be read, and the reasons of the others."""
    rows, bad = array("q"), dict[int, str]()
    for stamps in _stamps(source, bad):
        rows.extend(stamps)
    return rows, bad
