"""SIGKILL at random moments and inside writes, then the same command again: is anything lost?

    python benchmarks/kill.py --kills 200

Runs the whole method on embedded digits (prompts, frozen features, and with all cores, where
further processes work beside the first), and grids of `d2cp compare` and `d2cp reproduce`, each in
a process group of its own. The group is killed at a random moment, or as soon as a file that is
being written appears; where there are several processes, also the first alone, or one of the
others. The same command then goes on. When it ends, every artifact is compared, bit for bit, with
that of a run that was left alone; then a new round begins, until `--kills` are done. Exit code 0
only when nothing was lost.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from d2cp.core.files import sha256
from d2cp.core.threads import cores
from kill_jobs import JOBS, SEVERAL, SHARES
from killed_process import (
    Strike,
    attempt,
    being_written,
    checkpoints_every_step,
    import_everything,
    kill_first,
    kill_group,
    kill_other,
    use_all_cores,
)

CLOCKED = {"seconds", "digest"}  # what a file says of the clock, and of itself, differs
UNCOMPARED = {".lock", ".lock.owner", "report.html", "table.html"}  # made of the rest, and of times
IN_WRITE = 0.5  # share of the kills that wait for a file being written


@dataclass
class Figures:
    kills: int = 0
    in_writes: int = 0
    first: int = 0  # the first process alone
    others: list[str] = field(default_factory=list)  # another process alone
    completed: int = 0
    identical: int = 0
    lost: list[str] = field(default_factory=list)
    where: Counter[str] = field(default_factory=Counter)

    def add(self, other: Figures) -> None:
        for name in ("kills", "in_writes", "first", "others", "completed", "identical", "lost"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def __str__(self) -> str:
        alone = f", {self.first} of the first process alone, {len(self.others)} of another alone"
        return (
            f"{self.kills} kills ({self.in_writes} inside a write"
            f"{alone if self.first or self.others else ''}), {self.completed} completed runs, "
            f"{self.identical} identical, {len(self.lost)} lost"
        )


def contents(out: Path) -> dict[str, str]:
    """Every file by its bytes; JSON without its clock."""
    found = {}
    for path in sorted(p for p in out.rglob("*") if p.is_file() and p.name not in UNCOMPARED):
        name = str(path.relative_to(out))
        if path.suffix == ".json":
            found[name] = json.dumps(_timeless(json.loads(path.read_text())))
        elif path.name == "compare.csv":
            found[name] = str(len(path.read_text().splitlines()))  # a line a cell and split
        elif path.suffix != ".log":  # what processes said
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


class Torment:
    """One command, killed and resumed until it ends, again and again."""

    def __init__(self, job: str, work: Path, draw: random.Random) -> None:
        self.words, self.work, self.draw = JOBS[job], work, draw
        self.several = job in SEVERAL
        # Where one core is granted, the processes share it.
        all_cores = partial(use_all_cores, at_least=2)
        self.before: Callable[[], object] = all_cores if self.several else lambda: None
        self.figures = Figures()
        self.reference: dict[str, str] = {}
        self.usual = 0.0  # seconds when left alone
        self.over: Callable[[], bool] = lambda: False

    def alone(self) -> str:
        """The run that is left alone; what it said where it failed."""
        began = time.monotonic()
        code = self._attempt(self.work / "alone", 1e9, False, kill_group)
        self.usual = time.monotonic() - began
        if code != 0:
            return self._said()
        self.reference = contents(self.work / "alone")
        return ""

    def go(self, kills: int, end: float, say: Callable[[str], object]) -> None:
        """Kill and resume until the command ends; compare; again until `kills` are done, or until
        the clock says `end`."""
        figures, rounds = self.figures, 0
        self.over = lambda: figures.kills >= kills or time.monotonic() >= end
        while not self.over():
            out = self.work / f"killed-{rounds}"
            rounds += 1
            code = self._until_it_ends(out)
            figures.completed += 1
            if code != 0:
                figures.lost.append(f"{out.name}: exit code {code}: {self._said()[-500:]}")
            elif wrong := differences(self.reference, contents(out)):
                listed = ", ".join(wrong[:5])
                figures.lost.append(f"{out.name}: {listed} of {len(wrong)} files differ")
            else:
                figures.identical += 1
            if not figures.lost:
                shutil.rmtree(out)
            say(f"  {figures.kills} kills, {figures.identical} of {figures.completed} identical")

    def _until_it_ends(self, out: Path) -> int:
        figures, draw = self.figures, self.draw
        while True:
            wait = draw.uniform(0, self.usual) * draw.choice((0.05, 0.2, 0.5, 1.0))
            if self.over():
                wait = 1e9  # the last round is left to end
            in_write = draw.random() < IN_WRITE
            others: list[str] = []
            strike = self._strike(others)
            code = self._attempt(out, wait, in_write, strike)
            figures.others += others
            if code is None:
                figures.first += strike is kill_first
                figures.in_writes += in_write and being_written(out)
            if code is None or others:
                figures.kills += 1
                figures.where[last_stage(out)] += 1
            if code == 0 or (code is not None and not (others and "to do:" in self._said())):
                return code

    def _strike(self, others: list[str]) -> Strike:
        if not self.several:
            return kill_group
        other = partial(kill_other, draw=self.draw, killed=others)
        return self.draw.choice((kill_group, kill_first, other))

    def _attempt(self, out: Path, wait: float, in_write: bool, strike: Strike) -> int | None:
        log = self.work / "log"
        return attempt(self.words, out, log, wait, in_write, strike=strike, before=self.before)

    def _said(self) -> str:
        return (self.work / "log").read_text(errors="replace")


def last_stage(out: Path) -> str:
    """After which stage, or cell, the kill came."""
    done = [p for p in out.rglob("manifest.json") if ".writing-" not in str(p)]
    done += [*out.glob("cells/*.json"), *out.rglob("cell.json")]
    newest = max(done, key=lambda p: p.stat().st_mtime_ns, default=None)
    if newest is None:
        return "start"
    return newest.parent.name if newest.name == "manifest.json" else "a cell"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=1e9, help="fewer kills rather than longer")
    parser.add_argument("--jobs", default=",".join(JOBS), help=f"which of {', '.join(JOBS)}")
    given = parser.parse_args()
    import_everything()
    checkpoints_every_step()
    chosen = given.jobs.split(",")
    print(f"{cores()} cores", flush=True)
    whole, began = Figures(), time.monotonic()
    for index, job in enumerate(chosen):
        left, rest = given.kills - whole.kills, chosen[index:]
        part = SHARES[job] / sum(SHARES[name] for name in rest)
        share, now = round(left * part), time.monotonic()
        end = now + part * (began + 60 * given.minutes - now)
        with tempfile.TemporaryDirectory(prefix="d2cp-kill-", ignore_cleanup_errors=True) as folder:
            torment = Torment(job, Path(folder), random.Random(f"{given.seed}/{job}"))
            if said := torment.alone():
                print(said)
                return 1
            print(f"{job}: {torment.usual:.1f} s when left alone", flush=True)
            torment.go(share, end, partial(print, flush=True))
        figures = torment.figures
        where = ", ".join(f"{name} {n}" for name, n in figures.where.most_common())
        print(f"{job}: {figures}; last finished before the kill: {where}", flush=True)
        for text in figures.lost:
            print(f"  lost: {text}")
        whole.add(figures)
    print(f"all: {whole}")
    return 1 if whole.lost else 0


if __name__ == "__main__":
    raise SystemExit(main())
