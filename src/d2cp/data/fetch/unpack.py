"""Archives from elsewhere: plain files and folders, below the target, whole or not at all."""

from __future__ import annotations

import lzma
import os
import shutil
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from d2cp.core.files import whole_folder
from d2cp.errors import DataError

MAX_BYTES = 64 * 2**30  # of all files of an archive, unpacked
MAX_FILES = 2_000_000
Member = tuple[str, IO[bytes]]
# What the readers of archives raise, and two members that are in each other's way. An unknown
# method and a password are a NotImplementedError and a RuntimeError, a name that is no text or
# holds a NUL a ValueError, an empty one an IndexError.
_FAULTS = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, struct.error),
    *(RuntimeError, ValueError, LookupError),
    *(FileExistsError, NotADirectoryError, IsADirectoryError),
)


def unpack(archive: Path, folder: Path) -> list[str]:
    """Unpack into `folder`; returns the names at its top. They appear when all is unpacked."""
    try:
        with whole_folder(folder / f".{archive.name}.unpacked") as fresh:
            written = 0
            for number, (name, content) in enumerate(_members(archive)):
                path = fresh / safe(name, archive)
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("xb") as out:
                    while block := _block(content):
                        written += len(block)
                        if written > MAX_BYTES or number > MAX_FILES:
                            raise DataError(f"{archive} unpacks to more than {MAX_BYTES} bytes")
                        out.write(block)
    except _FAULTS as error:
        raise DataError(
            f"{archive} cannot be unpacked: {error}",
            expected="a whole archive",
            remedy="delete it and fetch again",
        ) from error
    return _put(folder / f".{archive.name}.unpacked", folder)


def safe(name: str, archive: Path) -> Path:
    """A member's path, refused if it leaves the folder that it is unpacked in."""
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or not path.parts or ":" in path.parts[0]:
        raise DataError(
            f"{archive} holds {name!r}, which leads out of the folder",
            expected="paths inside the archive's own folder",
            remedy="do not unpack it: this is not the published archive",
        )
    return Path(*path.parts)


def _block(content: IO[bytes]) -> bytes:
    """Damaged data is no fault of the disk, which an OSError is taken for elsewhere."""
    try:
        return content.read(1 << 20)
    except OSError as error:
        raise ValueError(str(error)) from error


def _members(archive: Path) -> Iterator[Member]:
    try:
        yield from _plain_members(archive)
    except OSError as error:
        raise ValueError(str(error)) from error


def _plain_members(archive: Path) -> Iterator[Member]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as zipped:
            for item in zipped.infolist():
                if not item.is_dir():
                    with zipped.open(item) as content:
                        yield item.filename, content
        return
    with tarfile.open(archive) as packed:
        for member in packed:
            if member.isdir():
                continue
            plain = packed.extractfile(member) if member.isfile() else None
            if plain is None:
                raise DataError(
                    f"{archive} holds {member.name!r}, which is no plain file",
                    expected="files and folders, no links and no devices",
                    remedy="do not unpack it: this is not the published archive",
                )
            yield member.name, plain


def _put(fresh: Path, folder: Path) -> list[str]:
    """What was unpacked takes its place; what an earlier attempt left there makes way."""
    names = sorted(path.name for path in fresh.iterdir())
    for name in names:
        if (folder / name).is_dir():
            shutil.rmtree(folder / name)
        os.replace(fresh / name, folder / name)
    fresh.rmdir()
    return names
