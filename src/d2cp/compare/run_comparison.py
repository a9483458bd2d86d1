"""A comparison from start to end: lock, record, search, run what is missing, write the tables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from d2cp import __version__
from d2cp.compare.comparison import HEADER, comparison, tidy_rows
from d2cp.compare.contract import Tier
from d2cp.compare.grid import Grid, run_all, search
from d2cp.compare.registry import chosen as chosen_methods
from d2cp.config import Config
from d2cp.core.files import read_json, write_csv, write_json
from d2cp.core.machine import describe, machine_class
from d2cp.core.run_directory import RunDirectory
from d2cp.data.place import Place
from d2cp.errors import ConfigError


def run_comparison(
    data: str | Path,
    *,
    out: Path | str,
    config: Config,
    names: str = "all",
    seeds: int = 3,
    budget: int = 24000,
    tier: str = "prompts",
    search: int = 0,
    jobs: int = 1,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    images: Path | str | None = None,
    cache_dir: Path | None = None,
    force: bool = False,
    quiet: bool = False,
) -> dict[str, Any]:
    """Run methods x seeds and return the content of OUT/compare.json.

    With `all`, methods that cannot run on the tier are left out; named ones are an error.
    """
    wanted = [m.spec for m in chosen_methods(names)]
    if names.strip() == "all":
        wanted = [spec for spec in wanted if tier in spec.tiers]
    for spec in wanted:
        spec.require_tier(cast(Tier, tier))
    cores = os.cpu_count() or 1
    grid = Grid(
        place=Place.of(data, format, columns, images),
        out=Path(out),
        config={k: v for k, v in config.to_dict().items() if k != "seed"},
        names=tuple(spec.name for spec in wanted),
        budget=budget,
        tier=cast(Tier, tier),
        cache_dir=cache_dir,
        threads=max(1, cores // jobs),
        force=force,
        quiet=quiet,
    )
    run = RunDirectory(grid.out)
    with run.locked():
        run.start(
            {
                "version": __version__,
                "data": {"name": grid.place.data},
                "config": grid.config,
                "compare": {"budget": budget, "tier": tier, "search": search},
            },
            force=force,
        )
        write_json(run.path / "environment.json", describe())
        best = _searched(grid, search)
        run_all(grid, range(seeds), jobs, best)
        cells = [read_json(grid.cell(name, s)) for name in grid.names for s in range(seeds)]
        whole = comparison(
            cells,
            data=_name(grid),
            about={
                "selection": config.debias.selection,
                "budget": budget,
                "tier": tier,
                "backbone": config.backbone,
                "machine": machine_class(),
                "searched": search,
            },
        )
        write_csv(run.path / "compare.csv", HEADER, tidy_rows(whole["results"]))
        write_json(run.path / "compare.json", whole)
    return whole


def _searched(grid: Grid, draws: int) -> dict[str, dict[str, Any]]:
    if not draws:
        return {}
    if grid.config["debias"]["selection"] not in ("val_true_groups", "val_pseudo_groups"):
        raise ConfigError(
            "--search with selection val_worst_class",
            expected="a rule that can tell a robust model from one that is right on average",
            remedy="use --selection val_pseudo_groups or val_true_groups",
        )
    return {name: search(grid, name, draws) for name in grid.names}


def _name(grid: Grid) -> str:
    """The data set's own name, from a seed's data stage."""
    first = min((grid.out / "seeds").iterdir(), key=lambda p: p.name)
    return str(read_json(first / "data" / "summary.json")["name"])
