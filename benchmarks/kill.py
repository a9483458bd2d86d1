"""SIGKILL at random moments and inside writes, then the same command again: is anything lost?

    python benchmarks/kill.py --kills 200

Runs the whole method on embedded digits (prompts, then frozen features) and a grid of `d2cp
compare`, each as processes of their own group. A process is killed at a random moment, or as soon
as a file that is being written appears; the same command then goes on. When it ends, every artifact
is compared, bit for bit, with that of a run that was left alone; then a new round begins, until
`--kills` are done. Exit code 0 only when nothing was lost.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from d2cp.core.files import sha256

SMALL = {
    "train_limit": 120,
    "val_limit": 40,
    "test_limit": 40,
    "disentangle.steps": 4,
    "disentangle.batch": 8,
    "disentangle.concepts": 3,
    "disentangle.encoder.width": 8,
    "disentangle.encoder.hidden": 16,
    "disentangle.unet.channels": [32],
    "disentangle.unet.attention": [0],
    "disentangle.ddim_steps": 2,
    "disentangle.guide.steps": 6,
    "mine.bootstrap": 2,
    "mine.l2_grid": [0.1],
    "mine.folds": 2,
    "environments.steps": 20,
    "environments.settings": 2,
    "debias.epochs": 1,
    "debias.max_steps": 4,
    "debias.batch_size": 16,
    "debias.prompt_length": 2,
    "debias.feature_draws": 1,
}
CLOCKED = {"seconds"}  # what a file says of the clock differs from run to run
UNCOMPARED = {".lock", ".lock.owner", "report.html"}  # the report is made of the rest, and of times
IN_WRITE = 0.5  # share of the kills that wait for a file being written


def settings() -> list[str]:
    return [word for k, v in SMALL.items() for word in ("--set", f"{k}={v}")]


JOBS: dict[str, list[str]] = {
    "prompts": ["run", "cmnist", *settings()],
    "features": ["run", "cmnist", "--set", "debias.tier='features'", *settings()],
    "compare": [
        *("compare", "cmnist", "--methods", "erm,group_dro,dfr", "--seeds", "2", "--budget", "240"),
        *("--tier", "features", "--selection", "val_worst_class", *settings()),
    ],
}


@dataclass
class Figures:
    kills: int = 0
    in_writes: int = 0
    completed: int = 0
    identical: int = 0
    lost: list[str] = field(default_factory=list)
    where: Counter[str] = field(default_factory=Counter)


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


def kill_group(child: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(child, 0)


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


def attempt(words: list[str], out: Path, log: Path, wait: float, in_write: bool) -> int | None:
    """Start, and kill after `wait` seconds (or at the first write after them); the exit code of a
    process that ended before, None of one that was killed."""
    child = start([*words, "--out", str(out), "--quiet"], log)
    due = time.monotonic() + wait
    try:
        while True:
            if (code := ended(child)) is not None:
                return code
            now = time.monotonic()
            if now >= due and (not in_write or now >= due + 5 or being_written(out)):
                return None
            time.sleep(0.002)
    finally:
        kill_group(child)


def contents(out: Path) -> dict[str, str]:
    """Every file by its bytes; JSON without its clock."""
    found = {}
    for path in sorted(p for p in out.rglob("*") if p.is_file() and p.name not in UNCOMPARED):
        name = str(path.relative_to(out))
        if path.suffix == ".json":
            found[name] = json.dumps(_timeless(json.loads(path.read_text())))
        elif path.name == "compare.csv":
            found[name] = str(len(path.read_text().splitlines()))  # a line a cell and split
        else:
            found[name] = sha256(path)
    return found


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            k: _timeless(v)
            for k, v in value.items()
            # A stage's manifest holds the checksums of files that hold times, as compare's do.
            if k not in CLOCKED
        }
    return [_timeless(v) for v in value] if isinstance(value, list) else value


def differences(reference: dict[str, str], found: dict[str, str]) -> list[str]:
    return sorted(
        name for name in reference.keys() | found.keys() if reference.get(name) != found.get(name)
    )


def torment(
    words: list[str],
    reference: dict[str, str],
    usual: float,
    work: Path,
    figures: Figures,
    kills: int,
    draw: random.Random,
    say: Any = print,
) -> None:
    """Kill and resume until the command ends; compare; again until `kills` are done."""
    round_ = 0
    while figures.kills < kills:
        out = work / f"killed-{round_}"
        round_ += 1
        while True:
            wait = draw.uniform(0, usual) * draw.choice((0.05, 0.2, 0.5, 1.0))
            if figures.kills >= kills:
                wait = 1e9  # the last round is left to end
            in_write = draw.random() < IN_WRITE
            code = attempt(words, out, work / "log", wait, in_write)
            if code is not None:
                break
            figures.kills += 1
            figures.in_writes += in_write and being_written(out)
            figures.where[last_stage(out)] += 1
        figures.completed += 1
        if code != 0:
            said = (work / "log").read_text()[-500:]
            figures.lost.append(f"{out.name}: exit code {code}: {said}")
        elif wrong := differences(reference, contents(out)):
            figures.lost.append(f"{out.name}: {', '.join(wrong[:5])} of {len(wrong)} files differ")
        else:
            figures.identical += 1
        if not figures.lost:
            shutil.rmtree(out)
        say(f"  {figures.kills} kills, {figures.identical} of {figures.completed} identical")


def last_stage(out: Path) -> str:
    """After which stage, or cell, the kill came."""
    done = [*out.glob("*/manifest.json"), *out.glob("cells/*.json")]
    newest = max(done, key=lambda p: p.stat().st_mtime_ns, default=None)
    if newest is None:
        return "start"
    return newest.parent.name if newest.name == "manifest.json" else "a cell"


def checkpoints_every_step() -> None:
    """A minute between checkpoints is more than these runs take: here every step has one."""
    import d2cp.compare.grid as grid
    import d2cp.pipeline.context as context
    from d2cp.core.checkpoint import Checkpointer

    for module in (context, grid):
        module.Checkpointer = partial(Checkpointer, every_steps=1)  # type: ignore[attr-defined]


def import_everything() -> None:
    import sklearn.linear_model
    import transformers

    import d2cp.api
    import d2cp.compare.run_comparison
    import d2cp.report.build

    assert sklearn.linear_model and transformers and d2cp.api


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", default=",".join(JOBS), help="which of prompts,features,compare")
    given = parser.parse_args()
    import_everything()
    checkpoints_every_step()
    chosen = given.jobs.split(",")
    whole = Figures()
    for index, job in enumerate(chosen):
        share = given.kills // len(chosen) + (index < given.kills % len(chosen))
        with tempfile.TemporaryDirectory(prefix="d2cp-kill-") as folder:
            work, figures = Path(folder), Figures()
            began = time.monotonic()
            code = attempt(JOBS[job], work / "alone", work / "log", 1e9, False)
            usual = time.monotonic() - began
            if code != 0:
                print((work / "log").read_text())
                return 1
            print(f"{job}: {usual:.1f} s when left alone", flush=True)
            reference = contents(work / "alone")
            say = partial(print, flush=True)
            draw = random.Random(f"{given.seed}/{job}")
            torment(JOBS[job], reference, usual, work, figures, share, draw, say)
        where = ", ".join(f"{name} {n}" for name, n in figures.where.most_common())
        print(
            f"{job}: {figures.kills} kills ({figures.in_writes} inside a write), "
            f"{figures.completed} completed runs, {figures.identical} identical, "
            f"{len(figures.lost)} lost; last finished before the kill: {where}"
        )
        for text in figures.lost:
            print(f"  lost: {text}")
        whole.kills += figures.kills
        whole.in_writes += figures.in_writes
        whole.completed += figures.completed
        whole.identical += figures.identical
        whole.lost += figures.lost
    print(
        f"all: {whole.kills} kills ({whole.in_writes} inside a write), {whole.completed} completed "
        f"runs, {whole.identical} identical, {len(whole.lost)} lost"
    )
    return 1 if whole.lost else 0


if __name__ == "__main__":
    raise SystemExit(main())
