"""The parts of a comparison that can run anywhere: a seed, a cell, the search of one method.

`0` is seed 0, `erm-0` one of its cells, `search-erm` the search of a method; `d2cp compare` with
`--only` runs one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from d2cp.compare.grid import Grid, run_seed, search, searched
from d2cp.errors import ConfigError

Per = Literal["seed", "cell"]


def part_names(grid: Grid, seeds: int, per: Per) -> list[str]:
    if per == "seed":
        return [str(seed) for seed in range(seeds)]
    return [f"{name}-{seed}" for seed in range(seeds) for name in grid.names]


def search_names(grid: Grid, draws: int) -> list[str]:
    return [f"search-{name}" for name in grid.names] if draws else []


def run_part(grid: Grid, part: str, seeds: int, draws: int) -> None:
    """Run what is missing of one part."""
    if part in search_names(grid, draws):
        search(grid, part.removeprefix("search-"), draws)
        return
    names, seed = _resolved(grid, part, seeds)
    smaller = replace(grid, names=tuple(names))
    run_seed(smaller, seed, {name: search(grid, name, draws) for name in names if draws})


def part_is_done(grid: Grid, part: str, seeds: int, draws: int) -> bool:
    if part in search_names(grid, draws):
        return searched(grid, part.removeprefix("search-"), draws)
    names, seed = _resolved(grid, part, seeds)
    if draws and not all(searched(grid, name, draws) for name in names):
        return False
    chosen = {name: search(grid, name, draws) if draws else None for name in names}
    return all(
        grid.finished(
            grid.cell(name, seed),
            grid.identity(name, seed, grid.spec(name).values(chosen[name])),
        )
        for name in names
    )


def _resolved(grid: Grid, part: str, seeds: int) -> tuple[Sequence[str], int]:
    for seed in range(seeds):
        if part == str(seed):
            return grid.names, seed
        for name in grid.names:
            if part == f"{name}-{seed}":
                return [name], seed
    known = [*part_names(grid, seeds, "seed"), *part_names(grid, seeds, "cell")]
    raise ConfigError(f"--only {part}", expected="one of " + ", ".join(known))
