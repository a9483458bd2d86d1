"""A comparison from start to end: lock, record, search, run what is missing, write the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from rich.console import Console

from d2cp import __version__
from d2cp.compare.available import check_start, runnable
from d2cp.compare.comparison import HEADER, comparison, tidy_rows
from d2cp.compare.contract import Tier
from d2cp.compare.earlier import earlier
from d2cp.compare.grid import Grid, read_cell
from d2cp.compare.parts import Per, part_is_done, part_names, run_part, search_names
from d2cp.compare.registry import Groups
from d2cp.compare.registry import chosen as chosen_methods
from d2cp.config import Config
from d2cp.core.device import use_device
from d2cp.core.files import write_csv, write_json
from d2cp.core.machine import code_commit, describe, machine_class
from d2cp.core.processes import process_count
from d2cp.core.records import CellRecord
from d2cp.core.run_directory import RunDirectory
from d2cp.data.place import Place
from d2cp.errors import ConfigError
from d2cp.executors import Away, Job, run_jobs

LOGS = "jobs"  # what jobs in processes of their own say


@dataclass(frozen=True, kw_only=True)
class Elsewhere:
    """The parts of a comparison as jobs: `command` runs one when `--only PART` is added."""

    away: Away | None  # None: nothing is run, the commands are returned
    command: Sequence[str]
    per: Per = "seed"


def run_comparison(
    data: str | Path,
    *,
    out: Path | str,
    config: Config,
    names: str = "all",
    seeds: int = 3,
    budget: int = 24000,
    epochs: int = 0,
    tier: str = "prompts",
    groups: str = "true",
    search: int = 0,
    elsewhere: Elsewhere | None = None,
    only: str | None = None,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    images: Path | str | None = None,
    cache_dir: Path | None = None,
    device: str | None = None,
    force: bool = False,
    quiet: bool = False,
    command: str = "",
) -> dict[str, Any]:
    """Run methods x seeds and return the content of OUT/compare.json.

    Of `all`, methods that cannot run here are left out, with the reason; named ones are an error.
    `epochs` gives every training as many epochs, instead of every method the same passes. With
    `elsewhere`, its parts run as commands of their own. `only` one part (`compare.parts`) is run
    here, whoever runs the others, and nothing is returned. `command` is what was typed, for
    compare.json.
    """
    use_device(device)
    if process_count() > 1:
        raise ConfigError(
            f"compare in {process_count()} processes that share every batch",
            expected="one process, which may start others for its seeds",
            remedy="start it without torchrun or accelerate launch, with --jobs",
        )
    _check_search(search, config)
    place = Place.of(data, format, columns, images)
    table = place.table()
    check_start(config, table)
    wanted, skipped = runnable(
        [m.spec for m in chosen_methods(names, cast(Groups, groups))],
        tier=cast(Tier, tier),
        table=table,
        backbone=config.backbone,
        named=names.strip() != "all",
    )
    console = Console(stderr=True, highlight=False, quiet=quiet)
    for name, reason in skipped.items():
        console.print(f"{name} is left out: {reason}", markup=False)
    grid = Grid(
        place=place,
        out=Path(out),
        config={k: v for k, v in config.to_dict().items() if k != "seed"},
        names=tuple(spec.name for spec in wanted),
        budget=budget,
        epochs=epochs,
        tier=cast(Tier, tier),
        cache_dir=cache_dir,
        device=device,
        force=force,
        quiet=quiet,
    )
    run = RunDirectory(grid.out)
    description = {
        "version": __version__,
        "data": {"name": grid.place.data},
        "config": grid.config,
        "compare": {**_budget(grid), "tier": tier, "search": search},
    }
    if elsewhere is not None and elsewhere.away is None:
        parts = [p for batch in batches(grid, seeds, search, elsewhere.per) for p in batch]
        return {"commands": [[*elsewhere.command, "--only", part] for part in parts]}
    if only is not None:
        run.start(description, force=force)
        run_part(grid, only, seeds, search)
        return {}
    # Jobs of a head that was killed may still write: nothing of theirs is swept away.
    with run.locked(clean=elsewhere is None):
        stale = earlier(grid, seeds, search)
        run.start(description, force=force)  # refuses other settings without force
        for line in stale:
            console.print(line, markup=False, soft_wrap=True)
        write_json(run.path / "environment.json", describe())
        for parts in batches(grid, seeds, search, elsewhere.per if elsewhere else "seed"):
            if elsewhere is None or elsewhere.away is None:
                for part in parts:
                    run_part(grid, part, seeds, search)
            else:
                jobs = _jobs(grid, parts, seeds, search, elsewhere.command)
                say = partial(console.print, markup=False, soft_wrap=True)
                run_jobs(jobs, elsewhere.away, run.path / LOGS, say)
        paths = [grid.cell(name, seed) for name in grid.names for seed in range(seeds)]
        cells = [dict(read_cell(path, CellRecord)) for path in paths]
        whole = comparison(
            cells,
            data=table.name,
            about={
                "selection": config.debias.selection,
                **_budget(grid),
                "tier": tier,
                "backbone": config.backbone,
                "machine": machine_class(),
                "commit": code_commit(),
                "command": command,
                "searched": search,
                "skipped": skipped,
            },
        )
        write_csv(run.path / "compare.csv", HEADER, tidy_rows(whole["results"]))
        write_json(run.path / "compare.json", whole)
    return whole


def batches(grid: Grid, seeds: int, search: int, per: Per) -> list[list[str]]:
    """The parts of a comparison: those of a batch may run in any order, or at the same time."""
    return [batch for batch in (search_names(grid, search), part_names(grid, seeds, per)) if batch]


def _jobs(
    grid: Grid, parts: Sequence[str], seeds: int, search: int, command: Sequence[str]
) -> list[Job]:
    return [
        Job(
            part,
            (*command, "--only", part),
            partial(part_is_done, grid, part, seeds, search),
        )
        for part in parts
    ]


def _budget(grid: Grid) -> dict[str, int]:
    return {"epochs": grid.epochs} if grid.epochs else {"budget": grid.budget}


def _check_search(draws: int, config: Config) -> None:
    if draws and config.debias.selection == "val_worst_class":
        raise ConfigError(
            "--search with selection val_worst_class",
            expected="a rule that can tell a robust model from one that is right on average",
            remedy="use --selection val_pseudo_groups or val_true_groups",
        )
