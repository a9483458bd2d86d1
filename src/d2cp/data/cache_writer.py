"""A cache entry while it is written: squares one after another, then the files beside them, then
one rename. Until that nothing is found under its name, whatever ends the writer."""

from __future__ import annotations

import csv
import errno
import json
import os
import shutil
import tempfile
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2cp.core.files import sync_directory
from d2cp.data.cache_room import MANIFEST
from d2cp.data.packed_digests import DigestSet

Square = NDArray[np.uint8] | str  # or why there is none


class EntryWriter:
    """In a hidden folder beside the entries, `.name.…`, which goes when the writer is left."""

    def __init__(self, folder: Path, name: str, settings: dict[str, Any]) -> None:
        self._folder, self._settings = folder, settings
        self._work = Path(tempfile.mkdtemp(dir=folder, prefix=f".{name}."))
        self._empty = bytes(int(settings["size"]) ** 2 * 3)  # a place that is never read
        self.digests = DigestSet()  # of the squares so far, in their order
        self._bad: list[tuple[str, str, str]] = []
        self._checksum = blake2b(digest_size=16)
        # Plain writes, not a writable map: a full disk then raises instead of killing the process.
        self._pixels = (self._work / "pixels.u8").open("wb")

    def __enter__(self) -> EntryWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        try:
            self._pixels.close()
        finally:
            shutil.rmtree(self._work, ignore_errors=True)

    def add(self, digest: bytes, name: str, square: Square) -> None:
        if isinstance(square, str):
            shown = name.encode("utf-8", "backslashreplace").decode()
            self._bad.append((digest.hex(), shown, square))
            data: bytes | memoryview = self._empty
        else:
            data = np.ascontiguousarray(square).data
        self.digests.add(digest)
        self._pixels.write(data)
        self._checksum.update(data)

    def finish(self, content: str) -> None:
        """The entry under its name; one that is there already is as good."""
        self._pixels.flush()
        self._pixels.close()
        (self._work / "digests.bin").write_bytes(self.digests.packed().tobytes())
        with (self._work / "quarantine.csv").open("w", newline="", encoding="utf-8") as listing:
            writer = csv.writer(listing, lineterminator="\n")
            writer.writerows([("digest", "file", "reason"), *self._bad])
        manifest = {
            "settings": self._settings,
            "count": len(self.digests),
            "pixels": self._checksum.hexdigest(),
            "pixels_mtime_ns": (self._work / "pixels.u8").stat().st_mtime_ns,
            "digests": checksum_of(self._work / "digests.bin"),
            "quarantine": checksum_of(self._work / "quarantine.csv"),
        }
        (self._work / MANIFEST).write_text(json.dumps(manifest, indent=2))
        for path in self._work.iterdir():
            with path.open("rb") as done:
                os.fsync(done.fileno())
        try:
            os.rename(self._work, self._folder / content)
        except OSError as error:
            # Without a working lock two builders can meet here.
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        sync_directory(self._folder)


def checksum_of(path: Path) -> str:
    checksum = blake2b(digest_size=16)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            checksum.update(block)
    return checksum.hexdigest()
