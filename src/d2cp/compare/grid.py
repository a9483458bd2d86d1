"""The grid of `d2cp compare`: methods x seeds, a cell at a time, each finished cell one JSON file.

OUT/run.json, environment.json     OUT/seeds/<seed>/   what all methods of a seed share (a run)
OUT/cells/<method>-<seed>.json     OUT/search/<method>-<draw>.json
OUT/locks/                         who works on a cell: nobody else does it meanwhile
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from d2cp import __version__
from d2cp.backbone.identity import backbone_key
from d2cp.compare.contract import (
    SHARED,
    Method,
    Params,
    Predictor,
    Spec,
    Tier,
    selection_logits,
)
from d2cp.compare.footing import Footing
from d2cp.compare.registry import method
from d2cp.compare.seed_run import open_seed
from d2cp.config import Config, config_from_dict
from d2cp.core.checkpoint import Checkpointer
from d2cp.core.files import fingerprint
from d2cp.core.locks import held_in
from d2cp.core.records import CellRecord, TrialRecord
from d2cp.core.rng import numpy_generator
from d2cp.core.sealed import read_sealed, write_sealed
from d2cp.core.time_spent import TimeSpent
from d2cp.data.place import Place
from d2cp.data.table import Table
from d2cp.errors import TrainingError
from d2cp.evaluate.columns import WORST, groupings
from d2cp.evaluate.result import score

T = TypeVar("T")
SEARCHED = 0  # the seed that parameters are searched on
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

    @contextmanager
    def unfinished(self, path: Path, identity: str) -> Iterator[bool]:
        """Whether a cell is still to be done; nobody else does it in the meantime."""
        lock = f"{path.parent.name}-{path.stem}.lock"
        with held_in(self.out / "locks", lock, wait=True):
            yield self.finished(path, identity) is None

    def spec(self, name: str) -> Spec:
        """A method's declaration on the tier of this comparison."""
        return method(name).spec.on(self.tier)

    def finished(self, path: Path, identity: str) -> dict[str, Any] | None:
        """A cell that was run with exactly these settings."""
        if not path.is_file():
            return None
        form: type[Any] = TrialRecord if path.parent.name == "search" else CellRecord
        found = dict(read_cell(path, form))
        return found if found["identity"] == identity else None


def read_cell(path: Path, form: type[T]) -> T:
    return read_sealed(path, form, remedy=f"delete {path} and run again: the others are kept")


def run_seed(grid: Grid, seed: int, chosen: dict[str, dict[str, Any]]) -> None:
    """All cells of a seed that are not finished; `chosen` are parameters from a search."""
    wanted = {name: grid.spec(name).values(chosen.get(name)) for name in grid.names}
    left = [
        name
        for name, params in wanted.items()
        if not grid.finished(grid.cell(name, seed), grid.identity(name, seed, params))
    ]
    if not left:
        return
    with open_seed(grid, seed, left) as (footing, say):
        for name in left:
            identity, path = grid.identity(name, seed, wanted[name]), grid.cell(name, seed)
            with grid.unfinished(path, identity) as mine:
                if not mine:
                    continue
                predictor, facts = fit_method(grid, footing, method(name), wanted[name], identity)
                results = scored(footing.table, predictor, name, seed, footing.rule)
                write_sealed(path, {"identity": identity, "results": results, **facts})
                _forget(grid, identity)
            say(_line(name, seed, results, facts))


def trials(grid: Grid, name: str, draws: int) -> dict[Path, Params]:
    """What a search tries: the defaults and `draws` random ones, each with its file."""
    spec = grid.spec(name)
    generator = numpy_generator(SEARCHED, f"search/{name}")
    tried = [spec.values(), *(spec.draw(generator) for _ in range(draws))]
    return {grid.out / "search" / f"{name}-{k}.json": params for k, params in enumerate(tried)}


def searched(grid: Grid, name: str, draws: int) -> bool:
    """Whether the search of a method is over."""
    return all(
        grid.finished(path, grid.identity(name, SEARCHED, params))
        for path, params in trials(grid, name, draws).items()
    )


def search(grid: Grid, name: str, draws: int) -> dict[str, Any]:
    """The parameters, of the defaults and `draws` random ones, that the rule likes best on the
    validation split, seed 0. Test images are not read."""
    tried = trials(grid, name, draws)
    if not searched(grid, name, draws):
        with open_seed(grid, SEARCHED, [name]) as (footing, say):
            for path, params in tried.items():
                with grid.unfinished(path, grid.identity(name, SEARCHED, params)) as mine:
                    if mine:
                        reached = _try(grid, footing, name, path, params)
                        say(f"search {path.stem} of {draws}: {reached[0]:.4f} with {params}")
    scores = [(read_cell(path, TrialRecord)["score"], -k) for k, path in enumerate(tried)]
    return dict(list(tried.values())[-max(scores)[1]])


def _try(grid: Grid, footing: Footing, name: str, path: Path, params: Params) -> list[float]:
    rule, identity = footing.selection(), grid.identity(name, SEARCHED, params)
    assert rule is not None
    facts: dict[str, Any]
    try:
        predictor, facts = fit_method(grid, footing, method(name), params, identity)
        reached = list(rule(selection_logits(predictor)))
    except TrainingError as error:  # a draw that diverges has lost, and no more
        facts, reached = {"params": dict(params), "notes": [str(error)]}, [0.0, 0.0]
    write_sealed(path, {"identity": identity, "score": reached, **facts})
    _forget(grid, identity)
    return reached


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
