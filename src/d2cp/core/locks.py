"""One holder of a folder or an entry at a time; the system frees the lock when its holder dies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout


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
    try:
        lock.acquire()
    except Timeout:
        raise HeldError(owner.read_text() if owner.is_file() else "?") from None
    try:
        owner.unlink(missing_ok=True)
        owner.write_text(str(os.getpid()))
        yield
    finally:
        owner.unlink(missing_ok=True)  # also where the run is refused: nothing is left behind
        lock.release()
