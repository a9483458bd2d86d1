"""Progress of long work: a bar on a terminal, plain lines (now and then) elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

LINE_SECONDS = 15.0


class Bar:
    """What a loop sees of its progress display."""

    def __init__(self, total: int, title: str, done: int) -> None:
        self.total, self.title, self.done = total, title, done
        self._started, self._first, self._images = time.monotonic(), done, 0

    def step(self, images: int = 0, **values: float) -> None:
        """One step done; `images` were worked on; `values` (such as loss) are shown."""
        self.done += 1
        self._images += images
        self._show(self._describe(values))

    def _describe(self, values: dict[str, float]) -> str:
        parts = [f"{name} {value:.4g}" for name, value in values.items()]
        seconds = time.monotonic() - self._started
        if self._images and seconds > 0:
            parts.append(f"{self._images / seconds:.0f} images/s")
        return "  ".join(parts)

    def time_left(self) -> float:
        steps = self.done - self._first
        if not steps:
            return float("inf")
        return (time.monotonic() - self._started) / steps * (self.total - self.done)

    def _show(self, text: str) -> None:
        """Overridden by the displays; the base shows nothing (quiet)."""


class _RichBar(Bar):
    def __init__(self, total: int, title: str, done: int, display: Progress) -> None:
        super().__init__(total, title, done)
        self._display = display
        self._task = display.add_task(title, total=total, completed=done, values="")

    def _show(self, text: str) -> None:
        self._display.update(self._task, completed=self.done, values=text)


class _LineBar(Bar):
    def __init__(self, total: int, title: str, done: int, console: Console) -> None:
        super().__init__(total, title, done)
        self._console, self._next = console, time.monotonic() + LINE_SECONDS

    def _show(self, text: str) -> None:
        if self.done < self.total and time.monotonic() < self._next:
            return
        self._next = time.monotonic() + LINE_SECONDS
        left = f"  {self.time_left():.0f} s left" if self.done < self.total else ""
        self._console.print(
            f"{self.title}  {self.done}/{self.total}  {text}{left}", highlight=False, soft_wrap=True
        )


@contextmanager
def progress(
    total: int, title: str, *, done: int = 0, quiet: bool = False, console: Console | None = None
) -> Iterator[Bar]:
    """Show `total` steps of which `done` are already there (a resumed run)."""
    console = console or Console(stderr=True)
    if quiet:
        yield Bar(total, title, done)
    elif not console.is_terminal:
        yield _LineBar(total, title, done, console)
    else:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[values]}"),
        )
        with Progress(*columns, console=console) as display:
            yield _RichBar(total, title, done, display)
