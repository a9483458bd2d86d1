"""Decode once: a memory-mapped uint8 cache at working size, keyed by content and settings.

    <cache>/images/<settings>/<content>/pixels.u8       one square per distinct image
                                        digests.bin     16 bytes per square, in the same order
                                        quarantine.csv  what could not be decoded, and why
                                        manifest.json   settings, sizes, checksums; written last

An entry is built under a temporary name and renamed when complete, so a killed builder leaves
nothing that is read. Squares are found by the digest of their file: a table whose images all lie
in an entry built for a larger table uses that entry. Old entries go when the cache is full
(`cache_room`).
"""

from __future__ import annotations

import csv
import errno
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2cp.core.files import fingerprint, sync_directory
from d2cp.core.locks import Use, held
from d2cp.core.progress import progress
from d2cp.data.cache_room import MANIFEST, limit_bytes, make_room, mark_used
from d2cp.data.digests import digest_bytes, ordered_map
from d2cp.data.images import UnreadableError
from d2cp.errors import DataError

LAYOUT = 1
# Up to here every opening verifies the checksum of the pixels (a second at most); a larger entry
# is verified again when the file's time stamp is not the one it was written with.
ALWAYS_VERIFY_BYTES = 256 * 2**20

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
    slots: dict[bytes, int]  # digest → square
    bad: dict[bytes, str]  # digest → reason
    use: Use  # keeps others from removing it

    @property
    def pixels(self) -> Path:
        return self.path / "pixels.u8"

    @property
    def key(self) -> str:
        return f"{self.path.parent.name}/{self.path.name}"


def open_entry(
    wanted: dict[bytes, int],
    render: Render,
    names: Callable[[int], str],
    settings: dict[str, Any],
    cache_dir: Path,
    *,
    quiet: bool = False,
) -> Entry:
    """The entry that holds every wanted digest (digest → a row that has it), built if need be.
    `settings["size"]` is the side of a square."""
    folder = cache_dir / "images" / fingerprint({**settings, "layout": LAYOUT})
    content = digest_bytes(b"".join(sorted(wanted))).hex()
    size = int(settings["size"])
    if entry := _find(folder, content, wanted, size):
        return entry
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with held(folder / f"{content}.lock", wait=True):
            # Another process may have built it while this one waited.
            if entry := _find(folder, content, wanted, size):
                return entry
            needed = len(wanted) * size * size * 3
            make_room(cache_dir, needed, limit_bytes())
            _require_space(folder, needed)
            _clear(folder, content)
            _build(folder, content, wanted, render, names, settings, quiet)
    except OSError as error:
        raise _unwritable(cache_dir, error) from error
    entry = _read(folder / content, size)
    if entry is None:
        raise DataError(
            f"the image cache {folder / content} was damaged while it was being written",
            remedy="check the disk, or name another one: --cache, or without it D2CP_CACHE",
        )
    return entry


def _build(
    folder: Path,
    content: str,
    wanted: dict[bytes, int],
    render: Render,
    names: Callable[[int], str],
    settings: dict[str, Any],
    quiet: bool,
) -> None:
    work = Path(tempfile.mkdtemp(dir=folder, prefix=f".{content}."))
    try:
        size = int(settings["size"])
        square = size * size * 3
        digests, rows = list(wanted), list(wanted.values())
        reasons: dict[int, str] = {}
        checksum = blake2b(digest_size=16)

        def attempt(row: int) -> NDArray[np.uint8] | str:
            try:
                return render(row)
            except UnreadableError as error:
                return str(error)

        # Plain writes, not a writable map: a full disk then raises instead of killing the process.
        with (
            (work / "pixels.u8").open("wb") as file,
            progress(len(rows), "decoding images", quiet=quiet or len(rows) < 2000) as bar,
        ):
            for slot, result in enumerate(ordered_map(attempt, rows)):
                if isinstance(result, str):
                    reasons[slot] = result
                    data = bytes(square)  # a place that is never read
                else:
                    data = result.tobytes()
                file.write(data)
                checksum.update(data)
                bar.step(images=1)
            file.flush()
            os.fsync(file.fileno())
        (work / "digests.bin").write_bytes(b"".join(digests))
        with (work / "quarantine.csv").open("w", newline="", encoding="utf-8") as listing:
            writer = csv.writer(listing, lineterminator="\n")
            writer.writerow(("digest", "file", "reason"))
            for slot, reason in reasons.items():
                name = names(rows[slot]).encode("utf-8", "backslashreplace").decode()
                writer.writerow((digests[slot].hex(), name, reason))
        manifest = {
            "settings": settings,
            "count": len(rows),
            "pixels": checksum.hexdigest(),
            "pixels_mtime_ns": (work / "pixels.u8").stat().st_mtime_ns,
            "digests": _checksum(work / "digests.bin"),
            "quarantine": _checksum(work / "quarantine.csv"),
        }
        (work / MANIFEST).write_text(json.dumps(manifest, indent=2))
        for path in work.iterdir():
            with path.open("rb") as done:
                os.fsync(done.fileno())
        try:
            os.rename(work, folder / content)
        except OSError as error:
            # Without a working lock two builders can meet here; the first one's entry is as good.
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        sync_directory(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _find(folder: Path, content: str, wanted: dict[bytes, int], size: int) -> Entry | None:
    if entry := _read(folder / content, size):
        return entry
    if not folder.is_dir():
        return None
    for path in sorted(folder.iterdir()):
        if path.name in (content,) or path.name.startswith(".") or not path.is_dir():
            continue
        digests = path / "digests.bin"
        if not digests.is_file() or digests.stat().st_size < 16 * len(wanted):
            continue
        if wanted.keys() <= set(_split_digests(digests.read_bytes())) and (
            entry := _read(path, size)
        ):
            return entry
    return None


def _read(path: Path, size: int) -> Entry | None:
    """The entry, or None when it is absent, cut short or altered."""
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
            if _checksum(path / f"{name}{suffix}") != manifest[name]:
                raise ValueError("altered")
        untouched = status.st_mtime_ns == manifest["pixels_mtime_ns"]
        if (not untouched or status.st_size <= ALWAYS_VERIFY_BYTES) and _checksum(
            path / "pixels.u8"
        ) != manifest["pixels"]:
            raise ValueError("altered")
        digests = _split_digests((path / "digests.bin").read_bytes())
        with (path / "quarantine.csv").open(newline="", encoding="utf-8") as listing:
            bad = {bytes.fromhex(d): reason for d, _, reason in list(csv.reader(listing))[1:]}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        if use is not None:
            use.close()
        return None
    mark_used(path)
    return Entry(path, {digest: slot for slot, digest in enumerate(digests)}, bad, use)


def _split_digests(data: bytes) -> list[bytes]:
    return [data[start : start + 16] for start in range(0, len(data), 16)]


def _checksum(path: Path) -> str:
    checksum = blake2b(digest_size=16)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            checksum.update(block)
    return checksum.hexdigest()


def _clear(folder: Path, content: str) -> None:
    """Remove a damaged entry and what killed builders left; the lock on `content` is held."""
    for path in (folder / content, *folder.glob(f".{content}.*")):
        if path.is_dir():
            shutil.rmtree(path)


def _require_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed * 1.02:
        raise OSError(errno.ENOSPC, f"{needed / 2**20:.0f} MB needed, {free / 2**20:.0f} MB free")


def _unwritable(cache_dir: Path, error: OSError) -> DataError:
    return DataError(
        f"the image cache cannot be written in {cache_dir}: {error.strerror or error}",
        expected="a writable folder with room for the decoded images",
        remedy="name such a folder: --cache, or without it the variable D2CP_CACHE",
    )
