"""Seconds that a killed attempt took, kept beside its checkpoints for the next one to add."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from d2cp.core.files import write_text
from d2cp.errors import RunError


class TimeSpent:
    """While the block runs; a block that fails leaves its time in `path`, for what it is worth."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.before = _read(path)

    @property
    def total(self) -> float:
        return self.before + time.monotonic() - self._began

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.path.unlink(missing_ok=True)
        elif self.path.parent.is_dir():
            # On a full disk, what the user must hear is the error that ended the block.
            with suppress(RunError):
                write_text(self.path, f"{self.total:.2f}")


def _read(path: Path) -> float:
    """A file that is cut short or altered costs the time it told, nothing else."""
    try:
        seconds = float(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return 0.0
    return seconds if math.isfinite(seconds) and seconds >= 0 else 0.0
