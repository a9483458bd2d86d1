"""How many threads a loop computes with: by the size of its operations, never by how busy the
machine happens to be, so that the same command gives the same bits (sums depend on the number).

Threads meet after every operation. Where operations are small that meeting costs more than the
second core gains, and a neighbour that takes one core for a moment stops them all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from pathlib import Path

GRAIN = 500_000  # numbers in a step's inputs that are worth a thread
CHOSEN_BY = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")


def wait_passively() -> None:
    """Threads that wait give up their core soon; must come before torch is imported. Whoever set
    a policy of their own keeps it."""
    if not any(name in os.environ for name in WAITING):
        os.environ["OMP_WAIT_POLICY"] = "passive"


def cores() -> int:
    """Cores that this process may use: affinity and the limits of its control groups."""
    count = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    return max(1, min([count, *(ceil(limit) for limit in quotas())]))


def chosen_by_user() -> bool:
    return any(os.environ.get(name) for name in CHOSEN_BY)


def allowed() -> int:
    """Cores that the user and the system grant."""
    import torch

    current = torch.get_num_threads()
    return current if chosen_by_user() else max(1, min(current, cores()))


def threads_for(values: int, before: int | None = None) -> int:
    """Threads for a loop whose steps take in so many numbers, or as many as it had `before`. What
    the user set in the environment stands; torch's own setting is never exceeded."""
    import torch

    current = torch.get_num_threads()
    if chosen_by_user():
        return current
    return max(1, min(before or values // GRAIN, current, cores()))


@contextmanager
def using(threads: int) -> Iterator[None]:
    """So many threads within a `with` block."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def quotas(
    root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")
) -> list[float]:
    """Cores that the control groups of this process grant, where they limit it."""
    found = []
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            base, read = root, _version_two
        elif "cpu" in controllers.split(","):
            base, read = root / "cpu", _version_one
        else:
            continue
        place = base / path.lstrip("/")
        for folder in (place, *place.parents):  # a limit above binds too
            if (limit := read(folder)) is not None:
                found.append(limit)
            if folder == base:
                break
    return found


def _version_two(folder: Path) -> float | None:
    try:
        quota, period = (folder / "cpu.max").read_text(encoding="utf-8").split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        return None


def _version_one(folder: Path) -> float | None:
    try:
        quota = int((folder / "cpu.cfs_quota_us").read_text(encoding="utf-8"))
        period = int((folder / "cpu.cfs_period_us").read_text(encoding="utf-8"))
        return None if quota <= 0 else quota / period
    except (OSError, ValueError):
        return None
