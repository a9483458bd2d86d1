"""Where pixels come from: encoded files (decoded once, into the cache) or arrays (read as is)."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from d2cp.data.images import MAX_BYTES, UnreadableError


class Stamp(NamedTuple):
    """A file's version: while it is the same, its digest need not be computed again.

    Copying tools and `touch` can give new content the old modification time; the time of change is
    the system's own.
    """

    name: str
    size: int
    mtime_ns: int
    ctime_ns: int


class ImageSource(Protocol):
    def __len__(self) -> int: ...

    def subset(self, indices: NDArray[np.int64]) -> ImageSource: ...

    def identity(self) -> str:
        """A cheap identity: names and sizes, not content."""


@runtime_checkable
class EncodedSource(ImageSource, Protocol):
    """Images as encoded bytes, one a row."""

    @property
    def centre_crop(self) -> int | None:
        """Side of the centre square cut out at native resolution before any resize (CelebA)."""

    @property
    def location(self) -> str:
        """What the digest index of this source is filed under."""

    def stamp(self, row: int) -> Stamp: ...

    def read(self, row: int) -> bytes: ...


@dataclass(frozen=True)
class FileSource:
    """Files below `root`. A name that leaves `bound` (the root, unless the user named a wider
    one), by a link too, is never opened."""

    root: Path
    names: NDArray[np.str_]
    centre_crop: int | None = None
    bound: Path | None = None

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def location(self) -> str:
        return os.path.realpath(self.root)

    @cached_property
    def _bound(self) -> str:
        return os.path.join(os.path.realpath(self.bound or self.root), "")

    @cached_property
    def _inside(self) -> dict[str, bool]:
        """Folder → does it lie below the root, links resolved? Filled as folders are met."""
        return {}

    def subset(self, indices: NDArray[np.int64]) -> FileSource:
        return replace(self, names=self.names[indices])

    def stamp(self, row: int) -> Stamp:
        name = str(self.names[row])
        path = os.path.join(self.root, name)
        try:
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                folder = os.path.dirname(os.path.realpath(path))
                status = os.stat(path)
            else:
                folder = os.path.dirname(path)
            if folder not in self._inside:
                below = os.path.join(os.path.realpath(folder), "")
                self._inside[folder] = below.startswith(self._bound)
        except (OSError, ValueError) as error:
            raise UnreadableError(_reason(error)) from None
        if not self._inside[folder]:
            raise UnreadableError(
                "a link or path that leaves the data folder (--images / would allow it)"
            )
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableError("not a regular file")
        if status.st_size > MAX_BYTES:
            raise UnreadableError(f"larger than {MAX_BYTES} bytes")
        return Stamp(name, status.st_size, status.st_mtime_ns, status.st_ctime_ns)

    def folder_outside(self) -> str:
        """The first folder, as the names spell it, that leads out of the bound; or nothing."""
        for folder in sorted({os.path.dirname(str(name)) for name in self.names}):
            place = os.path.join(os.path.realpath(os.path.join(self.root, folder)), "")
            if not place.startswith(self._bound):
                return folder or "."
        return ""

    def read(self, row: int) -> bytes:
        stamp = self.stamp(row)
        try:
            # Unbuffered, and no more asked for than there should be: a place of MAX_BYTES would
            # be made for every file.
            with open(os.path.join(self.root, stamp.name), "rb", buffering=0) as file:
                data = part = file.read(stamp.size + 1)
                while part and len(data) <= MAX_BYTES:
                    data += (part := file.read(2**20))
                return data
        except OSError as error:
            raise UnreadableError(_reason(error)) from None

    def identity(self) -> str:
        digest = hashlib.blake2b(f"{self.centre_crop}".encode(), digest_size=16)
        for row in range(len(self)):
            try:
                name, size = self.stamp(row)[:2]
            except UnreadableError:
                name, size = str(self.names[row]), -1
            digest.update(f"{name}\0{size}\0".encode("utf-8", "surrogatepass"))
        return digest.hexdigest()


@dataclass(frozen=True)
class ColouredSource:
    """Grey images, each shown in one colour of a palette; RGB is made for the rows asked for."""

    grey: NDArray[np.uint8]  # [N, side, side], shared by every subset
    index: NDArray[np.int64]  # row → which grey image
    colour: NDArray[np.int64]  # row → which colour of the palette
    palette: NDArray[np.uint8]  # [colours, 3]

    def __len__(self) -> int:
        return len(self.index)

    @property
    def side(self) -> int:
        return int(self.grey.shape[1])

    def subset(self, indices: NDArray[np.int64]) -> ColouredSource:
        return replace(self, index=self.index[indices], colour=self.colour[indices])

    def pixels(self, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        """[B, side, side, 3]; exact for palette values 0 and 255."""
        grey = self.grey[self.index[rows]].astype(np.uint16)[..., None]
        tint = self.palette[self.colour[rows]].astype(np.uint16)[:, None, None, :]
        return ((grey * tint + 127) // 255).astype(np.uint8)

    def digest(self, row: int) -> bytes:
        """Content of one row."""
        tint = self.palette[self.colour[row]].tobytes()
        return hashlib.blake2b(self.grey[self.index[row]].tobytes() + tint, digest_size=16).digest()

    def identity(self) -> str:
        digest = hashlib.blake2b(self.palette.tobytes(), digest_size=16)
        digest.update(self.index.astype("<i8").tobytes() + self.colour.astype("<i8").tobytes())
        for row in np.unique(self.index):
            digest.update(self.grey[row].tobytes())
        return digest.hexdigest()


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return "missing file"
    if isinstance(error, OSError):
        return os.strerror(error.errno) if error.errno else str(error)
    return f"not a file name ({error})"
