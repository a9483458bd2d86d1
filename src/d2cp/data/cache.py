"""Decode once: a memory-mapped uint8 cache at working size, keyed by content and settings.

    <cache>/images/<settings>/<content>/pixels.u8       one square per distinct image
                                        digests.bin     16 bytes per square, in the same order
                                        quarantine.csv  what could not be decoded, and why
                                        manifest.json   settings, sizes, checksums; written last

An entry is built under a temporary name and renamed when complete, so a killed builder leaves
nothing that is read. Squares are found by the digest of their file: a table whose images all lie
in an entry built for a larger table uses that entry. Files that nobody has seen yet are read once,
digested and decoded together (`FirstLook`). Old entries go when the cache is full (`cache_room`).
"""

from __future__ import annotations

import csv
import errno
import json
import os
import shutil
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2cp.core.files import fingerprint
from d2cp.core.locks import Use, held
from d2cp.core.progress import progress
from d2cp.data.cache_room import MANIFEST, limit_bytes, make_room, mark_used
from d2cp.data.cache_writer import EntryWriter, Square, checksum_of
from d2cp.data.digests import SMALL, ordered_map
from d2cp.data.images import UnreadableError
from d2cp.data.packed_digests import (
    SIZE,
    Packed,
    RowDigests,
    content_of,
    digest_bytes,
    packed,
    places_of,
    unpacked,
)
from d2cp.errors import DataError

LAYOUT = 1
# Up to here every opening verifies the checksum of the pixels (a second at most); a larger entry
# is verified again when the file's time stamp is not the one it was written with.
ALWAYS_VERIFY_BYTES = 256 * 2**20
AT_ONCE = 4  # images a thread is handed: handing over a small one costs a tenth of decoding it

Render = Callable[[int], NDArray[np.uint8]]


def default_cache_dir() -> Path:
    """$D2CP_CACHE, else d2cp in the user's cache folder."""
    if chosen := os.environ.get("D2CP_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "d2cp"


@dataclass(frozen=True)
class Entry:
    path: Path
    digests: Packed  # of the squares, in their order
    bad: dict[bytes, str]  # digest → reason
    use: Use  # keeps others from removing it

    @property
    def pixels(self) -> Path:
        return self.path / "pixels.u8"

    @property
    def key(self) -> str:
        return f"{self.path.parent.name}/{self.path.name}"


def open_entry(
    digests: RowDigests,
    render: Render,
    names: Callable[[int], str],
    settings: dict[str, Any],
    cache_dir: Path,
    *,
    quiet: bool = False,
    fresh: str = "",
) -> Entry:
    """The entry that holds the digests of all rows, built if need be. `settings["size"]` is the
    side of a square; `fresh` is the content this process has just built."""
    rows = digests.first_rows()
    wanted = digests.values[rows]
    folder, content, size = _folder(cache_dir, settings), content_of(wanted), int(settings["size"])
    if fresh == content and (entry := _read(folder / content, size, fresh=True)):
        return entry
    if entry := _find(folder, content, wanted, size):
        return entry
    with _building(cache_dir, folder, content):
        # Another process may have built it while this one waited.
        if entry := _find(folder, content, wanted, size):
            return entry
        _make_way(cache_dir, folder, content, len(wanted), size)
        _build(folder, content, wanted, rows, render, names, settings, quiet)
    entry = _read(folder / content, size, fresh=True)
    if entry is None:
        raise DataError(
            f"the image cache {folder / content} was damaged while it was being written",
            remedy="check the disk, or name another one: --cache, or without it D2CP_CACHE",
        )
    return entry


def _build(
    folder: Path,
    content: str,
    wanted: Packed,
    rows: NDArray[np.int64],
    render: Render,
    names: Callable[[int], str],
    settings: dict[str, Any],
    quiet: bool,
) -> None:
    def attempt(row: int) -> Square:
        try:
            return render(row)
        except UnreadableError as error:
            return str(error)

    listed = array("q", rows.tobytes())
    squares = _shown(ordered_map(attempt, listed, AT_ONCE), len(rows), quiet)
    with EntryWriter(folder, content, settings) as writer:
        for digest, row, square in zip(wanted, listed, squares, strict=True):
            writer.add(unpacked(digest), names(row), square)
        writer.finish(content)


@dataclass
class FirstLook:
    """Digests of files of which none was seen before, while the entry of their squares is built:
    each file is read once. Where the cache has entries of these settings nothing is decoded: one of
    them may hold the same images."""

    location: str
    read: Callable[[int], bytes]
    decode: Callable[[bytes], NDArray[np.uint8]]
    names: Callable[[int], str]
    settings: dict[str, Any]
    cache_dir: Path
    quiet: bool
    built: str = field(default="", init=False)  # the content, where an entry was built

    def digests(self, rows: Sequence[int]) -> Iterator[bytes | str]:
        """For each row its file's digest, or why it cannot be read."""
        folder = _folder(self.cache_dir, self.settings)
        place = digest_bytes(os.fsencode(self.location)).hex()
        with _building(self.cache_dir, folder, place):
            if any(folder.glob(f"[!.]*/{MANIFEST}")):
                yield from ordered_map(lambda row: self._look(row, decode=False)[0], rows, SMALL)
                return
            _make_way(self.cache_dir, folder, place, len(rows), int(self.settings["size"]))
            yield from self._build(folder, place, rows)

    def _build(self, folder: Path, place: str, rows: Sequence[int]) -> Iterator[bytes | str]:
        seen = _shown(ordered_map(self._look, rows, AT_ONCE), len(rows), self.quiet)
        with EntryWriter(folder, place, self.settings) as writer:
            for row, (digest, square) in zip(rows, seen, strict=True):
                if isinstance(digest, bytes) and digest not in writer.digests:
                    writer.add(digest, self.names(row), square)
                yield digest
            if len(writer.digests):
                self.built = content_of(writer.digests.packed())
                writer.finish(self.built)

    def _look(self, row: int, *, decode: bool = True) -> tuple[bytes | str, Square]:
        try:
            data = self.read(row)
        except UnreadableError as error:
            return str(error), ""
        digest = digest_bytes(data)
        try:
            return digest, self.decode(data) if decode else ""
        except UnreadableError as error:
            return digest, str(error)


def _shown(items: Iterable[Any], count: int, quiet: bool) -> Iterator[Any]:
    with progress(count, "decoding images", quiet=quiet or count < 2000) as bar:
        for item in items:
            yield item
            bar.step(images=1)


def _folder(cache_dir: Path, settings: dict[str, Any]) -> Path:
    return cache_dir / "images" / fingerprint({**settings, "layout": LAYOUT})


@contextmanager
def _building(cache_dir: Path, folder: Path, name: str) -> Iterator[None]:
    """One builder of this name at a time; a disk that is full or closed is told."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with held(folder / f"{name}.lock", wait=True):
            yield
    except OSError as error:
        raise _unwritable(cache_dir, error) from error


def _make_way(cache_dir: Path, folder: Path, name: str, images: int, size: int) -> None:
    """Room for so many squares; a damaged entry of this name and what killed builders left go. The
    lock on the name is held."""
    needed = images * size * size * 3
    make_room(cache_dir, needed, limit_bytes())
    free = shutil.disk_usage(folder).free
    if free < needed * 1.02:
        raise OSError(errno.ENOSPC, f"{needed / 2**20:.0f} MB needed, {free / 2**20:.0f} MB free")
    for path in (folder / name, *folder.glob(f".{name}.*")):
        if path.is_dir():
            shutil.rmtree(path)


def _find(folder: Path, content: str, wanted: Packed, size: int) -> Entry | None:
    if entry := _read(folder / content, size):
        return entry
    if not folder.is_dir():
        return None
    for path in sorted(folder.iterdir()):
        if path.name in (content,) or path.name.startswith(".") or not path.is_dir():
            continue
        digests = path / "digests.bin"
        if not digests.is_file() or digests.stat().st_size < SIZE * len(wanted):
            continue
        if _holds(digests, wanted) and (entry := _read(path, size)):
            return entry
    return None


def _read(path: Path, size: int, *, fresh: bool = False) -> Entry | None:
    """The entry, or None when it is absent, cut short or altered. Pixels that this process has just
    written are not read back: they would come from memory."""
    use = None
    try:
        use = Use(path / MANIFEST)
        if not use.is_still(path / MANIFEST):
            raise FileNotFoundError  # removed before we held it
        manifest = json.loads((path / MANIFEST).read_text())
        status = (path / "pixels.u8").stat()
        if status.st_size != manifest["count"] * size * size * 3:
            raise ValueError("cut short")
        for name in ("digests", "quarantine"):
            suffix = ".bin" if name == "digests" else ".csv"
            if checksum_of(path / f"{name}{suffix}") != manifest[name]:
                raise ValueError("altered")
        untouched = status.st_mtime_ns == manifest["pixels_mtime_ns"]
        trusted = fresh or status.st_size > ALWAYS_VERIFY_BYTES
        if not (untouched and trusted) and checksum_of(path / "pixels.u8") != manifest["pixels"]:
            raise ValueError("altered")
        digests = packed((path / "digests.bin").read_bytes())
        with (path / "quarantine.csv").open(newline="", encoding="utf-8") as listing:
            bad = {bytes.fromhex(d): reason for d, _, reason in list(csv.reader(listing))[1:]}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        if use is not None:
            use.close()
        return None
    mark_used(path)
    return Entry(path, digests, bad, use)


def _holds(digests: Path, wanted: Packed) -> bool:
    data = digests.read_bytes()
    return len(data) % SIZE == 0 and bool((places_of(wanted, packed(data)) >= 0).all())


def _unwritable(cache_dir: Path, error: OSError) -> DataError:
    return DataError(
        f"the image cache cannot be written in {cache_dir}: {error.strerror or error}",
        expected="a writable folder with room for the decoded images",
        remedy="name such a folder: --cache, or without it the variable D2CP_CACHE",
    )
