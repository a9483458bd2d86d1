"""One holder of a folder or an entry at a time; the system frees the lock when its holder dies."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from d2cp.errors import RunError


class HeldError(Exception):
    """Somebody else holds the lock; the text says which process, where that is known."""


@contextmanager
def held(path: Path, *, wait: bool) -> Iterator[None]:
    """Hold the lock file `path`. `wait` until it is free, or raise HeldError at once.

    A link in its place is refused: the file it points to would be overwritten.
    """
    if path.is_symlink():
        raise OSError(0, "the lock file is a link", str(path))
    lock, owner = FileLock(path, timeout=-1 if wait else 0), path.with_name(f"{path.name}.owner")
    for file in (path, owner):
        if file.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(file))
    try:
        lock.acquire()
    except Timeout:
        raise HeldError(owner.read_text(errors="replace") if owner.is_file() else "?") from None
    try:
        owner.unlink(missing_ok=True)
        owner.write_text(str(os.getpid()))
        yield
    finally:
        owner.unlink(missing_ok=True)  # also where the run is refused: nothing is left behind
        lock.release()


@contextmanager
def held_in(folder: Path, name: str, *, wait: bool, choose: str = "--out") -> Iterator[None]:
    """Hold a lock file in a folder, which is made where there is none; a folder that cannot be
    written is told, with the option that names another."""
    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(held(folder / name, wait=wait))
        except IsADirectoryError as error:
            raise RunError(
                f"{error.filename} is a folder",
                expected="a lock file, or nothing",
                remedy=f"delete {error.filename}",
            ) from error
        except OSError as error:
            raise RunError(
                f"cannot write in {folder}: {error.strerror}",
                expected="a writable directory",
                remedy=f"choose another {choose}",
            ) from error
        yield


class Use:
    """A file that this process reads: nobody who asks `unused` finds it free until this object is
    gone, or the process. Many may use it at once."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        _flock(self._file.fileno(), exclusive=False, wait=True)

    def is_still(self, path: Path) -> bool:
        """Whether the name stands for the same file as when it was opened."""
        try:
            return os.path.samestat(os.fstat(self._file.fileno()), path.stat())
        except OSError:
            return False

    def close(self) -> None:
        self._file.close()


@contextmanager
def unused(path: Path) -> Iterator[bool]:
    """Whether nobody uses this file; meanwhile nobody can begin to."""
    with path.open("r+b") as file:
        yield _flock(file.fileno(), exclusive=True, wait=False)


def _flock(handle: int, *, exclusive: bool, wait: bool) -> bool:
    try:
        import fcntl
    except ImportError:  # Windows: a file that is open cannot be removed there anyway
        return True
    kind = (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | (0 if wait else fcntl.LOCK_NB)
    try:
        fcntl.flock(handle, kind)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return not exclusive
    return True
