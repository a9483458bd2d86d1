"""Which runs may be averaged: seeds of one experiment, each of them once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from d2cp.core.records import DataSummary
from d2cp.core.run_directory import RunDirectory, first_difference
from d2cp.errors import RunError

SAME_DATA = ("name", "class_names", "attribute_names")


def require_one_experiment(runs: Sequence[RunDirectory]) -> None:
    """Refuse to pool other data, other settings, or a seed that is already there.

    The fingerprint of the data may differ: limits and drawn splits follow the seed.
    """
    if len(runs) == 1:
        return
    seeds: dict[int, RunDirectory] = {}
    for run in runs:
        config = run.description.get("config", {})
        seed = config.get("seed", 0)
        if seed in seeds:
            raise RunError(
                f"{seeds[seed].path} and {run.path} are both seed {seed}",
                expected="runs that differ in --seed, each given once",
                remedy="leave one of them out",
            )
        seeds[seed] = run
        first = runs[0]
        before, now = _data(first), _data(run)
        if before != now:
            raise _refused(first, run, first_difference(before, now, "data"))
        settings = [_seedless(r.description.get("config", {})) for r in (first, run)]
        if settings[0] != settings[1]:
            raise _refused(first, run, first_difference(settings[0], settings[1], "config"))


def _data(run: RunDirectory) -> dict[str, Any]:
    summary = run.read("data", "summary.json", DataSummary)
    return {key: summary.get(key) for key in SAME_DATA}


def _seedless(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key != "seed"}


def _refused(first: RunDirectory, other: RunDirectory, difference: str) -> RunError:
    return RunError(
        f"{first.path} and {other.path} are not seeds of one experiment: {difference}",
        expected="the same data set and settings, other seeds",
        remedy="evaluate them one at a time, or use `d2cp compare` for methods side by side",
    )
