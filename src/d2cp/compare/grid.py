"""The grid of `d2cp compare`: methods x seeds, a cell at a time, each finished cell one JSON file.

OUT/run.json, environment.json     OUT/seeds/<seed>/   what all methods of a seed share (a run)
OUT/cells/<method>-<seed>.json     OUT/search/<method>-<draw>.json
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from d2cp import __version__
from d2cp.backbone.identity import backbone_key
from d2cp.compare.contract import SHARED, Method, Params, Predictor, Tier, selection_logits
from d2cp.compare.footing import Footing
from d2cp.compare.registry import method
from d2cp.compare.seed_run import open_seed
from d2cp.config import Config, config_from_dict
from d2cp.core.checkpoint import Checkpointer
from d2cp.core.device import use_device
from d2cp.core.files import fingerprint, read_json, write_json
from d2cp.core.rng import numpy_generator
from d2cp.core.time_spent import TimeSpent
from d2cp.data.place import Place
from d2cp.data.table import Table
from d2cp.errors import TrainingError
from d2cp.evaluate.columns import WORST, groupings
from d2cp.evaluate.result import score

BALANCED = 2000  # images of `test_balanced` that are scored: within 2 points or so a group


@dataclass(frozen=True, kw_only=True)
class Grid:
    """What a comparison is; everything a worker process needs to run a part of it."""

    place: Place
    out: Path
    config: dict[str, Any]
    names: tuple[str, ...]
    budget: int
    tier: Tier
    epochs: int = 0  # equal epochs instead of an equal number of passes
    cache_dir: Path | None = None
    device: str | None = None
    threads: int = 0
    force: bool = False
    quiet: bool = False

    def settings(self, seed: int) -> Config:
        return config_from_dict({**self.config, "seed": seed})

    def identity(self, method: str, seed: int, params: Params) -> str:
        budget = ["epochs", self.epochs] if self.epochs else self.budget
        shared = [__version__, self.place.data, self.config, budget, self.tier]
        shared += self.place.options()
        if (key := backbone_key(self.config["backbone"])) != self.config["backbone"]:
            shared.append(key)
        return fingerprint([*shared, method, seed, dict(params)])

    def cell(self, method: str, seed: int) -> Path:
        return self.out / "cells" / f"{method}-{seed}.json"

    def finished(self, path: Path, identity: str) -> dict[str, Any] | None:
        """A cell that was run with exactly these settings."""
        if not path.is_file():
            return None
        found: dict[str, Any] = read_json(path)
        return found if found.get("identity") == identity else None


def run_seed(grid: Grid, seed: int, chosen: dict[str, dict[str, Any]]) -> None:
    """All cells of a seed that are not finished; `chosen` are parameters from a search."""
    wanted = {name: method(name).spec.values(chosen.get(name)) for name in grid.names}
    left = [
        name
        for name, params in wanted.items()
        if not grid.finished(grid.cell(name, seed), grid.identity(name, seed, params))
    ]
    if not left:
        return
    with open_seed(grid, seed, left) as (footing, say):
        for name in left:
            identity = grid.identity(name, seed, wanted[name])
            predictor, facts = fit_method(grid, footing, method(name), wanted[name], identity)
            results = scored(footing.table, predictor, name, seed, footing.rule)
            write_json(grid.cell(name, seed), {"identity": identity, "results": results, **facts})
            _forget(grid, identity)
            say(_line(name, seed, results, facts))


def search(grid: Grid, name: str, draws: int) -> dict[str, Any]:
    """The parameters, of the defaults and `draws` random ones, that the rule likes best on the
    validation split, seed 0. Test images are not read."""
    seed, spec = 0, method(name).spec
    generator = numpy_generator(seed, f"search/{name}")
    trials = [spec.values(), *(spec.draw(generator) for _ in range(draws))]
    scores: list[tuple[list[float], int]] = []
    missing = []
    for k, params in enumerate(trials):
        path = grid.out / "search" / f"{name}-{k}.json"
        found = grid.finished(path, grid.identity(name, seed, params))
        if found is None:
            missing.append(k)
        else:
            scores.append((found["score"], -k))
    if missing:
        with open_seed(grid, seed, [name]) as (footing, say):
            rule = footing.selection()
            assert rule is not None
            for k in missing:
                identity = grid.identity(name, seed, trials[k])
                path = grid.out / "search" / f"{name}-{k}.json"
                try:
                    predictor, facts = fit_method(grid, footing, method(name), trials[k], identity)
                    reached = list(rule(selection_logits(predictor)))
                except TrainingError as error:  # a draw that diverges has lost, and no more
                    facts, reached = {"params": trials[k], "notes": [str(error)]}, [0.0, 0.0]
                write_json(path, {"identity": identity, "score": reached, **facts})
                _forget(grid, identity)
                scores.append((reached, -k))
                say(f"search {name} {k}/{draws}: {reached[0]:.4f} with {trials[k]}")
    return trials[-max(scores)[1]]


def fit_method(
    grid: Grid, footing: Footing, chosen: Method, params: Params, identity: str
) -> tuple[Predictor, dict[str, Any]]:
    """Fit one method and tell what it cost. Seconds of a killed attempt are added."""
    folder = _folder(grid, identity)

    def checkpoints(stage: str) -> Checkpointer:
        return Checkpointer(folder / stage, identity=identity)

    task = footing.task(chosen.spec, checkpoints, params)
    own = {name: value for name, value in params.items() if name not in SHARED}
    with TimeSpent(folder / "seconds") as spent:
        predictor = chosen.fit(task, own)
        seconds = round(spent.total, 2)
    labels = [
        *(["train"] if chosen.spec.sees_train_groups else []),
        *(["val, fitted"] if chosen.spec.fits_on_val_groups else []),
        *(["val"] if footing.rule == "val_true_groups" else []),
    ]
    return predictor, {
        "tier": footing.space.tier,
        "trainable": predictor.trainable,
        "passes": task.passes,
        "seconds": seconds,
        "params": dict(params),
        "group_labels": labels,
        "mined_groups": "pseudo" in chosen.spec.needs,
        "notes": task.notes,
    }


def scored(
    table: Table, predictor: Predictor, name: str, seed: int, selection: str
) -> list[dict[str, Any]]:
    """Results on the test split, and on the balanced one where the data set has it."""
    train = table.rows("train")
    train_groups = table.y[train] if table.a is None else table.groups()[train]
    found = []
    for split in ("test", "test_balanced"):
        rows = table.rows(split)
        if split == "test_balanced" and len(rows) > BALANCED:
            rows = np.sort(numpy_generator(0, "balanced").permutation(rows)[:BALANCED])
        if not len(rows):
            continue
        result = score(
            predictor.logits(rows).argmax(1).numpy().astype(np.int64),
            table.y[rows],
            None if table.a is None else table.a[rows],
            table.n_values,
            train_groups,
            method=name,
            seed=seed,
            split=split,
            selection=selection,
            grouping="true",
            class_names=table.class_names,
            attribute_names=table.attribute_names,
        )
        found.append(result.to_dict())
    return found


def run_all(grid: Grid, seeds: Sequence[int], jobs: int, chosen: dict[str, dict[str, Any]]) -> None:
    """All seeds, `jobs` at a time, each in a process of its own when there is more than one."""
    if jobs <= 1:
        for seed in seeds:
            run_seed(grid, seed, chosen)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        min(jobs, len(seeds)), mp_context=context, initializer=_end_with_parent
    ) as pool:
        for future in [pool.submit(_worker, grid, seed, chosen) for seed in seeds]:
            future.result()


def _end_with_parent() -> None:
    """A worker whose parent was killed ends too, so that the same command can go on at once."""
    import multiprocessing
    import os
    import threading
    from multiprocessing.connection import wait

    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _worker(grid: Grid, seed: int, chosen: dict[str, dict[str, Any]]) -> None:
    import torch

    torch.set_num_threads(max(1, grid.threads))
    use_device(grid.device)
    run_seed(replace(grid, quiet=True), seed, chosen)


def _folder(grid: Grid, identity: str) -> Path:
    """Where a fit saves: other parameters, other folder."""
    return grid.out / "checkpoints" / identity


def _forget(grid: Grid, identity: str) -> None:
    """The cell is written: its checkpoints are not needed."""
    shutil.rmtree(_folder(grid, identity), ignore_errors=True)


def _line(name: str, seed: int, results: list[dict[str, Any]], facts: dict[str, Any]) -> str:
    worst = ", ".join(f"{r['split']} {100 * r[WORST.key]:.1f}" for r in results)
    heading = WORST.titled(groupings(results))
    return f"{name} seed {seed}: {heading} {worst}; {facts['seconds']:.0f} s"
