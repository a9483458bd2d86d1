"""Jobs on Slurm, through submitit: an array of commands, each queued again when it is preempted.

submitit stores what it submits as a pickle; here that is the words of a command and nothing else.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from d2cp.errors import ConfigError

if TYPE_CHECKING:
    from d2cp.executors.jobs import Job

POLL = 2.0  # seconds between two looks at the results
ASK = 15.0  # seconds between two questions to Slurm
GRACE = 60.0  # seconds that a shared file system may take to show a result


class Command:
    """What submitit calls on the node."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)

    def __call__(self) -> None:
        done = subprocess.run(self.words, check=False)
        if done.returncode < 0:
            # By a signal: Slurm takes the node back and is about to end this process as well. A
            # failure that is told in between would stand although the job is queued again.
            time.sleep(GRACE)
        done.check_returncode()

    def checkpoint(self) -> Any:
        """Preempted or out of time: the same command again, which goes on where it was."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def run_slurm(
    jobs: Sequence[Job], folder: Path, at_once: int, options: Mapping[str, str]
) -> dict[str, str]:
    """`options` are those of submitit's AutoExecutor: timeout_min, mem_gb, slurm_partition, …"""
    try:
        import submitit
    except ImportError:
        raise ConfigError(
            "--executor slurm needs submitit", remedy="pip install 'd2cp[slurm]'"
        ) from None
    given = {name: _number(value) for name, value in options.items()}
    cluster = given.pop("cluster", "slurm")
    try:
        executor = submitit.AutoExecutor(folder=folder / "%j", cluster=cluster)
        executor.update_parameters(name="d2cp", **given)
        if cluster == "slurm" and at_once:
            executor.update_parameters(slurm_array_parallelism=at_once)
    except (RuntimeError, ValueError, NameError, TypeError) as error:
        raise ConfigError(
            f"submitit refuses to submit: {error}",
            expected="a machine that can reach Slurm, and options that submitit knows",
        ) from error
    with executor.batch():
        waiting = [(job, executor.submit(Command(job.words))) for job in jobs]
    failed: dict[str, str] = {}
    gone_since: dict[str, float] = {}
    asked, queued = 0.0, None
    while waiting:
        time.sleep(POLL)
        now = time.monotonic()
        if cluster == "slurm" and now - asked > ASK:
            asked, queued = now, in_queue()
        still = []
        for job, submitted in waiting:
            if job.done():
                continue
            here = queued is not None and submitted.job_id in queued  # perhaps once more
            over = submitted.paths.result_pickle.exists()
            if (over or (cluster != "slurm" and submitted.done())) and not here:
                failed[job.name] = _reason(submitted)
                continue
            if queued is not None and not here:
                # Gone without a word: killed with its node, or cancelled.
                since = gone_since.setdefault(job.name, now)
                if now - since > GRACE:
                    failed[job.name] = f"Slurm no longer knows it; {submitted.paths.stderr}"
                    continue
            else:
                gone_since.pop(job.name, None)
            still.append((job, submitted))
        waiting = still
    return {name: reason for name, reason in failed.items() if reason}


def in_queue() -> set[str] | None:
    """Jobs that Slurm runs or will run, `12_3` each; None where it did not answer."""
    words = ["squeue", "--me", "--noheader", "--array", "--format=%i"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return set(done.stdout.split()) if done.returncode == 0 else None


def _reason(submitted: Any) -> str:
    error = submitted.exception()
    return (
        "" if error is None else f"{str(error).strip().splitlines()[-1]}; {submitted.paths.stderr}"
    )


def _number(value: str) -> int | str:
    return int(value) if value.isdigit() else value
