"""A command as a process group of its own, and ways to kill it."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

Strike = Callable[[int], bool]  # process -> whether the command is over


def start(words: list[str], log: Path, before: Callable[[], object] = lambda: None) -> int:
    """The command in a process and process group of its own, after `before`. It is a fork of this
    process, which has the imports done: a kill then costs no five seconds of start-up."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.setsid()
        handle = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        from d2cp.cli import main

        before()
        try:
            main(words)
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def ended(child: int) -> int | None:
    done, status = os.waitpid(child, os.WNOHANG)
    return None if not done else os.waitstatus_to_exitcode(status)


def kill_group(child: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(child, 0)
    return True


def kill_first(child: int) -> bool:
    """The first process alone: the others must end by themselves, and soon."""
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def kill_other(child: int, draw: random.Random, killed: list[str]) -> bool:
    """One of the others, where there is one: the command must go on, or end in a message."""
    others = descendants(child)
    if not others:
        return kill_group(child)
    chosen = draw.choice(others)
    killed.append(_command_line(chosen))
    with contextlib.suppress(ProcessLookupError):
        os.kill(chosen, signal.SIGKILL)
    return False


def descendants(process: int) -> list[int]:
    """Processes that it, or one of them, started and that are alive (Linux)."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            state, parent = (folder / "stat").read_text().rpartition(") ")[2].split()[:2]
            if state != "Z":
                parents[int(folder.name)] = int(parent)
    found = [process]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return sorted(found[1:])


def _command_line(process: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()[:60]
    return "?"


def being_written(out: Path) -> bool:
    """Whether a temporary file or folder is there: some write is under way."""
    pending = [out]
    while pending:
        try:
            entries = list(os.scandir(pending.pop()))
        except OSError:
            continue
        for entry in entries:
            if entry.name.startswith(".") and (
                entry.name.endswith(".tmp") or ".writing-" in entry.name
            ):
                return True
            if entry.is_dir(follow_symlinks=False):
                pending.append(Path(entry.path))
    return False


def attempt(
    words: list[str],
    out: Path,
    log: Path,
    wait: float,
    in_write: bool,
    *,
    strike: Strike = kill_group,
    before: Callable[[], object] = lambda: None,
) -> int | None:
    """Start, and strike after `wait` seconds (or at the first write after them); the exit code of a
    process that ended by itself, None of one that was killed."""
    child = start([*words, "--out", str(out), "--quiet"], log, before)
    due = time.monotonic() + wait
    over = False
    try:
        while True:
            if (code := ended(child)) is not None:
                return code
            now = time.monotonic()
            if now >= due and (not in_write or now >= due + 5 or being_written(out)):
                if over := strike(child):
                    return None
                due = float("inf")
            time.sleep(0.002)
    finally:
        if not over:  # it ended, or we are interrupted: nothing of it is left
            kill_group(child)


def use_all_cores(at_least: int = 1) -> None:
    """As for a user who has said nothing of threads, on a machine of `at_least` so many cores."""
    import torch

    from d2cp.core import threads
    from d2cp.executors import local
    from d2cp.pipeline import ahead

    for name in threads.CHOSEN_BY:
        os.environ.pop(name, None)
    count = max(at_least, threads.cores())
    for module in (threads, local, ahead):
        module.cores = lambda: count  # type: ignore[attr-defined]
    torch.set_num_threads(count)


def checkpoints_every_step() -> None:
    """A minute between checkpoints is more than these runs take: here every step has one."""
    import d2cp.compare.grid as grid
    import d2cp.pipeline.context as context
    import d2cp.reproduce.trained as trained
    from d2cp.core.checkpoint import Checkpointer

    for module in (context, grid, trained):
        module.Checkpointer = partial(Checkpointer, every_steps=1)  # type: ignore[attr-defined]


def import_everything() -> None:
    """And compute with one thread from here on: a fork of a process whose OpenMP threads have once
    worked waits for them for ever."""
    import sklearn.linear_model
    import torch
    import transformers

    import d2cp.api
    import d2cp.compare.run_comparison
    import d2cp.report.build
    import d2cp.reproduce.run_cell

    assert sklearn.linear_model and transformers and d2cp.api
    torch.set_num_threads(1)
