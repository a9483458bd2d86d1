"""`d2cp compare --tier features` on the features and mined values of a finished run.

    python benchmarks/methods_on_run.py DATA RUN OUT [--methods all] [--seeds 5] [--search 8]
        [--set refit=false …]      # fields of debias, name=value, in place of the run's

Stage 1 is that of the run for every seed: seeds differ in training alone. Else it is the same
protocol: defaults and random draws judged on seed 0 by `val_pseudo_groups`, then every seed.
Cells are files in OUT; killed, the same command goes on.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch

import d2cp.compare.grid as grids
import saved
from ablation import read_columns
from d2cp.cli.compare import show_comparison
from d2cp.compare.available import runnable
from d2cp.compare.comparison import comparison
from d2cp.compare.footing import Footing
from d2cp.compare.grid import Grid, read_cell
from d2cp.compare.parts import run_part, search_names
from d2cp.compare.registry import chosen
from d2cp.compare.seed_run import Say
from d2cp.compare.task import Pseudo
from d2cp.compare.tiers import FeatureSpace
from d2cp.config.whole import config_from_dict
from d2cp.core.files import write_json
from d2cp.core.machine import code_commit, machine_class
from d2cp.core.records import CellRecord
from d2cp.core.run_directory import RunDirectory
from d2cp.data.place import Place
from d2cp.pipeline.frozen_features import load_features
from d2cp.pipeline.opening import bound


def footing_of(run: Path, grid: Grid, seed: int) -> Footing:
    config = grid.settings(seed)
    drawn = RunDirectory(run).description["config"]["seed"]  # which rows, where they are limited
    table = bound(grid.place.table(), replace(config, seed=drawn))
    assert read_columns(run, "data/table.csv", "id").tolist() == [str(i) for i in table.ids]
    mined = read_columns(run, "mine/pseudo.csv", "pseudo").astype("int64")
    score = read_columns(run, "mine/pseudo.csv", "score").astype("float64")
    bits = [
        read_columns(run, "environments/bits.csv", name).astype("int64")
        for name in ("y_xrm", "a_xrm")
    ]
    features = load_features(run / "features")
    return Footing(
        table=table,
        space=FeatureSpace(features, config.debias, train=table.rows("train")),
        config=replace(config.debias, use_pseudo=True, use_xrm=True, dual_branch=True),
        seed=seed,
        budget=grid.budget,
        environments=config.environments,
        mined=Pseudo(mined, int(mined.max()) + 1, score, *bits),
        quiet=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("run", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--methods", default="all")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--search", type=int, default=8)
    parser.add_argument("--budget", type=int, default=44000)
    parser.add_argument("--set", action="append", default=[], help="a field of debias, name=value")
    given = parser.parse_args()
    torch.set_num_threads(1)
    place = Place.of(given.data, None, None, None)
    described = RunDirectory(given.run).description["config"]
    for name, value in (one.split("=") for one in given.set):
        described["debias"][name] = json.loads(value)
    config = config_from_dict(described)
    wanted, skipped = runnable(
        [m.spec for m in chosen(given.methods, "both")],
        tier="features",
        table=place.table(),
        backbone=config.backbone,
        named=False,
    )
    grid = Grid(
        place=place,
        out=given.out,
        config={k: v for k, v in config.to_dict().items() if k != "seed"},
        names=tuple(spec.name for spec in wanted),
        budget=given.budget,
        tier="features",
        quiet=True,
    )

    @contextmanager
    def open_seed(grid: Grid, seed: int, names: Sequence[str]) -> Iterator[tuple[Footing, Say]]:
        yield footing_of(given.run, grid, seed), lambda text: print(text, flush=True)

    grids.open_seed = open_seed  # everything else is the comparison's own
    for part in [*search_names(grid, given.search), *map(str, range(given.seeds))]:
        run_part(grid, part, given.seeds, given.search)
    paths = [grid.cell(name, seed) for name in grid.names for seed in range(given.seeds)]
    whole = comparison(
        [dict(read_cell(path, CellRecord)) for path in paths],
        data=place.table().name,
        about={
            "selection": config.debias.selection,
            "budget": given.budget,
            "tier": "features",
            "backbone": config.backbone,
            "machine": machine_class(),
            "commit": code_commit(),
            "command": saved.command(sys.argv),
            "searched": given.search,
            "skipped": skipped,
        },
    )
    write_json(given.out / "compare.json", whole)
    show_comparison(whole)


if __name__ == "__main__":
    main()
