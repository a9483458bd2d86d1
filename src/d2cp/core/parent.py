"""A process that ends with the one that started it, however that ended: its locks are then free."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

PIPE = "D2CP_PARENT_PIPE"


def end_with_parent() -> None:
    """Where the parent left one end of a pipe: end when the other end closes."""
    handle = os.environ.pop(PIPE, None)  # not for children of ours
    if handle is None:
        return

    def watch() -> None:
        with contextlib.suppress(OSError, ValueError):
            os.read(int(handle), 1)
            os._exit(1)

    threading.Thread(target=watch, name="d2cp-parent", daemon=True).start()


class Child:
    """A command that calls `end_with_parent`; what it says is added to `log`."""

    def __init__(
        self,
        words: Sequence[str],
        log: Path,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        reading, self._pipe = os.pipe()
        try:
            with log.open("ab") as file:
                self._process = subprocess.Popen(
                    list(words),
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, **(environment or {}), PIPE: str(reading)},
                    cwd=folder,
                    pass_fds=(reading,),
                )
        except BaseException:
            os.close(self._pipe)
            raise
        finally:
            os.close(reading)

    def ended(self) -> bool:
        return self._process.poll() is not None

    def wait(self) -> int:
        """Its exit code."""
        try:
            return self._process.wait()
        finally:
            self.stop()

    def stop(self) -> None:
        """End it, if it has not ended, and wait for that."""
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
        if not self.ended():
            self._process.kill()
        self._process.wait()


def run_child(
    words: Sequence[str],
    log: Path,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> int:
    """The exit code of a command that ends with us."""
    return Child(words, log, environment, folder).wait()
