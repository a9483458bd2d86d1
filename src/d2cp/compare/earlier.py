"""Cells of a comparison that were finished with other settings and will be run again: a person is
told before they are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from d2cp.compare.contract import Params
from d2cp.compare.grid import SEARCHED, Grid, read_cell, trials
from d2cp.core.differences import differing, told
from d2cp.core.records import CellRecord, TrialRecord
from d2cp.core.run_directory import RunDirectory

Wanted = dict[Path, tuple[str, int, Params]]


def earlier(grid: Grid, seeds: int, search: int) -> list[str]:
    """In lines. After a search only its trials can be judged: what it will choose is not known."""
    by: dict[tuple[str, ...], list[str]] = {}
    settings = _settings(grid)
    for path, (name, seed, params) in _wanted(grid, seeds, search).items():
        if not path.is_file():
            continue
        form: type[Any] = TrialRecord if search else CellRecord
        found: Mapping[str, Any] = read_cell(path, form)
        if found["identity"] == grid.identity(name, seed, params):
            continue
        own = [
            told(name, *pair) for name, pair in differing(found.get("params", {}), params).items()
        ]
        lines = [*settings, *own] or ["the version, the data set or the backbone's weights"]
        by.setdefault(tuple(lines), []).append(path.stem)
    made = []
    for why, names in by.items():
        made.append(
            f"{grid.out}: {len(names)} finished {'trials' if search else 'cells'} were run "
            f"otherwise and are run again ({', '.join(names)}):"
        )
        made += [f"    {line}" for line in why]
        made.append("  to keep them: another --out")
    return made


def _wanted(grid: Grid, seeds: int, search: int) -> Wanted:
    if search:
        return {
            path: (name, SEARCHED, params)
            for name in grid.names
            for path, params in trials(grid, name, search).items()
        }
    return {
        grid.cell(name, seed): (name, seed, grid.spec(name).values())
        for name in grid.names
        for seed in range(seeds)
    }


def _settings(grid: Grid) -> list[str]:
    """Differences to the settings that the folder was started with: with --force there can be."""
    run = RunDirectory(grid.out)
    if not (run.path / "run.json").is_file():
        return []
    then = {k: v for k, v in run.description.get("config", {}).items() if k != "preset"}
    now = {k: v for k, v in grid.config.items() if k != "preset"}
    return [told(name, *pair) for name, pair in differing(then, now).items()]
