"""Jobs as processes of this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from d2cp.core.parent import run_child
from d2cp.core.threads import chosen_by_user, cores
from d2cp.errors import ConfigError

if TYPE_CHECKING:
    from d2cp.executors.jobs import Job


def run_local(
    jobs: Sequence[Job], folder: Path, at_once: int, options: Mapping[str, str]
) -> dict[str, str]:
    """`at_once` jobs at a time; they share the cores evenly."""
    if options:
        raise ConfigError(
            f"--queue {min(options)} with processes of this machine",
            expected="--queue with --executor slurm or ray",
        )
    at_once = max(1, at_once)
    share = {} if chosen_by_user() else {"OMP_NUM_THREADS": str(max(1, cores() // at_once))}

    def run(job: Job) -> str:
        log = folder / f"{job.name}.log"
        code = run_child(job.words, log, share)
        return f"exit code {code}; {log}" if code else ""

    with ThreadPoolExecutor(at_once) as pool:
        ended = dict(zip([job.name for job in jobs], pool.map(run, jobs), strict=True))
    return {name: reason for name, reason in ended.items() if reason}
