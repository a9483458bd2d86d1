"""Jobs are commands. Each leaves its result in a shared directory and, run again, finds it there:
whoever ran it, and however often, there is one result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from d2cp.errors import RunError
from d2cp.executors.local import run_local
from d2cp.executors.ray_cluster import run_ray
from d2cp.executors.slurm import run_slurm

Say = Callable[[str], None]


@dataclass(frozen=True)
class Job:
    name: str
    words: tuple[str, ...]  # the command line
    done: Callable[[], bool]  # whether its result is there, and whole


@dataclass(frozen=True, kw_only=True)
class Away:
    """How a grid's jobs are to be run. `at_once`: 0 is one on this machine, all on a cluster."""

    executor: str = "local"
    at_once: int = 0
    options: Mapping[str, str] = field(default_factory=dict)


class Executor(Protocol):
    """Runs all jobs, in any order, and says of those that failed why, by name."""

    def __call__(
        self, jobs: Sequence[Job], folder: Path, at_once: int, options: Mapping[str, str]
    ) -> dict[str, str]: ...


EXECUTORS: dict[str, Executor] = {"local": run_local, "slurm": run_slurm, "ray": run_ray}


def run_jobs(jobs: Sequence[Job], away: Away, folder: Path, say: Say) -> None:
    """Run the jobs whose result is missing; their output goes to `folder`."""
    left = [job for job in jobs if not job.done()]
    if not left:
        return
    say(f"{len(left)} of {len(jobs)} jobs to run ({away.executor}); their output: {folder}")
    failed = EXECUTORS[away.executor](left, folder, away.at_once, away.options)
    missing = [job for job in left if not job.done()]
    if missing:
        first = missing[0]
        raise RunError(
            f"{len(missing)} of {len(left)} jobs left no result; "
            f"{first.name}: {failed.get(first.name, 'it ended')}",
            expected="a result of every job",
            remedy=f"read {folder}; the same command runs what is missing",
        )
