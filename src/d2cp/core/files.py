"""Writing files so that a kill, a full disk or a second writer never leaves half of one."""

from __future__ import annotations

import csv
import errno
import glob
import hashlib
import io
import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from d2cp.errors import RunError

MAX_JSON_BYTES = 512 * 2**20


@contextmanager
def writing_to(path: Path) -> Iterator[None]:
    """Faults of the disk while `path` is written, in words."""
    try:
        yield
    except IsADirectoryError as error:
        raise RunError(
            f"could not write {path}: there is a folder of that name",
            expected="a file, or nothing",
            remedy=f"move away or delete {path}, or name another place",
        ) from error
    except OSError as error:
        raise RunError(
            f"could not write {path}: {error.strerror or error}",
            expected="a writable directory with free space",
            remedy="free some space or name another place (--out, or the option that named this "
            "file); nothing was half-written",
        ) from error


def write_bytes(path: Path, data: bytes) -> None:
    with _replacing(path) as file:
        file.write(data)


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """A temporary file beside `path`; flushed to disk, then renamed over it."""
    with writing_to(path):
        _require_ordinary(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Not tempfile's: its files are private whatever the umask says of colleagues.
        temporary = path.parent / f".{path.name}.{secrets.token_hex(4)}.tmp"
        try:
            with temporary.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_directory(path.parent)


def _require_ordinary(path: Path) -> None:
    """A renaming would put a file in the place of a device such as /dev/stdout, for everybody."""
    link = path.is_symlink() and os.path.realpath(path.parent) == "/dev"
    if link or (path.exists() and not path.is_dir() and not path.is_file()):
        raise OSError(errno.EINVAL, "it is a device or a pipe, not a file")


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode())


def write_json(path: Path, value: Any) -> None:
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    try:
        data = text.encode()
    except UnicodeEncodeError:  # a path that is no UTF-8: escapes bring it back as it was
        data = json.dumps(value, indent=2, allow_nan=False).encode()
    write_bytes(path, data + b"\n")


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Written row by row: the text of a large table is not held."""
    with _replacing(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        try:
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(header)
            writer.writerows(rows)
        finally:
            text.detach()


def bounded_text(path: Path, most: int) -> str:
    """The text of a file from anywhere, of at most so many bytes; OSError or ValueError where there
    is none. A device or pipe, which may have no end, is not opened."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("it is not a file")
    if status.st_size > most:
        raise ValueError(f"it is larger than {most} bytes")
    return path.read_text(encoding="utf-8")


def parsed_json(path: Path) -> Any:
    """The content of a JSON file from anywhere; OSError, ValueError or RecursionError where it is
    none."""
    return json.loads(bounded_text(path, MAX_JSON_BYTES))


def read_json(path: Path) -> Any:
    try:
        return parsed_json(path)
    except FileNotFoundError as error:
        raise RunError(f"{path} does not exist", remedy="check the path of the run") from error
    # ValueError: bad UTF-8, bad JSON, a number of thousands of digits; RecursionError: deep lists.
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(
            f"{path} is not readable as JSON: {error}",
            expected="a file written by d2cp",
            remedy="delete the stage's folder and run again: the other stages are kept",
        ) from error


def sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def fingerprint(value: Any) -> str:
    """A short identity of a JSON-like value."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """A fresh folder beside `target`, which takes its name only when the block ends well."""
    hidden = f".{target.name}.writing-"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        for stray in target.parent.glob(f"{glob.escape(hidden)}*"):  # of a killed writer
            shutil.rmtree(stray, ignore_errors=True)
        folder, old = (target.parent / f"{hidden}{secrets.token_hex(4)}" for _ in range(2))
        folder.mkdir()
    except OSError as error:
        raise RunError(
            f"cannot write beside {target}: {error.strerror or error}",
            expected="a writable directory",
            remedy="choose another place",
        ) from error
    try:
        yield folder
        with writing_to(target):
            if target.exists():
                target.rename(old)
            try:
                folder.rename(target)
            except OSError:
                if old.exists():
                    old.rename(target)
                raise
            sync_directory(target.parent)
    finally:
        for path in (folder, old):
            shutil.rmtree(path, ignore_errors=True)


def sweep(folder: Path, *, below: bool = False) -> None:
    """Remove what killed writers left in `folder`, or in all folders below it as well."""
    for stray in [*folder.glob(".*.writing-*"), *folder.glob(".*.tmp")]:
        if stray.is_dir() and not stray.is_symlink():
            shutil.rmtree(stray, ignore_errors=True)
        else:
            stray.unlink(missing_ok=True)
    if below:
        for inside in folder.iterdir() if folder.is_dir() else ():
            if inside.is_dir() and not inside.is_symlink():
                sweep(inside, below=True)


def sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
