"""Jobs on a Ray cluster: a job whose node dies is run again on another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from d2cp.core.parent import run_child
from d2cp.errors import ConfigError

if TYPE_CHECKING:
    from d2cp.executors.jobs import Job

RETRIES = 10  # of a job whose node or worker died; a command that fails is not run again


def run_ray(
    jobs: Sequence[Job], folder: Path, at_once: int, options: Mapping[str, str]
) -> dict[str, str]:
    """`options`: `address` of the cluster (default: RAY_ADDRESS, or the one of this machine), and
    what a job needs: num_cpus, num_gpus, memory."""
    try:
        import ray
    except ImportError:
        raise ConfigError("--executor ray needs Ray", remedy="pip install 'd2cp[ray]'") from None
    given = dict(options)
    address = given.pop("address", "auto")
    if not ray.is_initialized():
        try:
            ray.init(address=address, log_to_driver=False)
        except ConnectionError as error:
            raise ConfigError(
                f"no Ray cluster at {address!r}",
                expected="a running cluster",
                remedy="ray start --head, or --queue address=HOST:PORT",
            ) from error
    needs: dict[str, Any] = {name: _number(value) for name, value in given.items()}
    task = ray.remote(run_child).options(max_retries=RETRIES, **needs)
    here = Path.cwd()
    failed: dict[str, str] = {}
    waiting = list(jobs)
    running: dict[Any, tuple[Job, Path]] = {}
    while waiting or running:
        while waiting and (not at_once or len(running) < at_once):
            job = waiting.pop(0)
            log = (folder / f"{job.name}.log").resolve()
            running[task.remote(list(job.words), log, None, here)] = (job, log)
        for reference in ray.wait(list(running))[0]:
            job, log = running.pop(reference)
            try:
                code = ray.get(reference)
            except ray.exceptions.RayError as error:
                failed[job.name] = str(error).strip().splitlines()[-1]
            else:
                if code:
                    failed[job.name] = f"exit code {code}; {log}"
    return failed


def _number(value: str) -> float | str:
    try:
        return float(value)
    except ValueError:
        return value
