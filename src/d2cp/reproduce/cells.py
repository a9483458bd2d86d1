"""Cells: a row, a data set and a seed. A cell is known by what its result hangs on, so that rows
with equal settings are one cell, whatever table asks; no torch here.

OUT/<scale>/<data>/seeds/<seed>/       what all cells of a seed share: a run of stage 1 and features
OUT/<scale>/<data>/cells/<identity>/   cell.json, and the model where one was trained
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from d2cp import __version__
from d2cp.config import Config
from d2cp.config.strict import changed
from d2cp.core.files import fingerprint, sha256
from d2cp.core.records import ReproducedCell
from d2cp.core.sealed import read_sealed
from d2cp.data.place import Place
from d2cp.data.table import Table
from d2cp.errors import ConfigError, RunError
from d2cp.reproduce.scales import Scale, benchmark
from d2cp.reproduce.tables import Reproduction, Row

RESULT = "cell.json"
SEEDS = "seeds"


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """One data set at one scale, with the configuration of its cells (seed 0)."""

    place: Place
    table: Table
    scale: Scale
    config: Config
    out: Path
    cache_dir: Path | None = None
    masks: Path | None = None
    assignments: tuple[str, ...] = ()  # what a person changed, as typed

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def folder(self) -> Path:
        return self.out / self.scale / self.name

    @cached_property
    def benchmark(self) -> str:
        return benchmark(self.table)

    @cached_property
    def identity(self) -> str:
        from d2cp.backbone.identity import backbone_key

        return fingerprint([self.table.fingerprint(), backbone_key(self.config.backbone)])


@dataclass(frozen=True, kw_only=True)
class Cell:
    data: DataSet
    row: Row
    seed: int

    @property
    def name(self) -> str:
        """As `--only` takes it."""
        return f"{self.data.name}/{self.row.key}/{self.seed}"

    @cached_property
    def config(self) -> Config:
        base = replace(self.data.config, seed=self.seed)
        return replace(base, debias=changed(base.debias, self.row.changes))

    @cached_property
    def identity(self) -> str:
        settings = {
            k: v for k, v in self.config.to_dict().items() if k not in ("preset", "backbone")
        }
        own: list[Any] = [] if self.row.kind == "train" else [self.row.kind, self.row.key]
        if self.row.kind == "saliency" and self.data.masks is not None:
            own.append(str(self.data.masks.resolve()))
        return fingerprint([__version__, self.data.identity, settings, *own])

    @property
    def folder(self) -> Path:
        return self.data.folder / "cells" / self.identity

    @property
    def checkpoints(self) -> Path:
        return self.data.folder / "checkpoints" / self.identity

    @property
    def training(self) -> Cell:
        """The cell whose model this one looks at."""
        return dataclasses.replace(self, row=replace(self.row, kind="train"))

    @property
    def is_finished(self) -> bool:
        return (self.folder / RESULT).is_file()

    def finished(self) -> dict[str, Any] | None:
        """What was written when the cell ended: its folder takes its name only then."""
        if not self.is_finished:
            return None
        remedy = f"delete {self.folder} and run again: the other cells are kept"
        found = read_sealed(self.folder / RESULT, ReproducedCell, remedy=remedy)
        for name, digest in found.get("files", {}).items():
            path = self.folder / name
            if not path.is_file() or sha256(path) != digest:
                raise RunError(
                    f"{path} is {'damaged' if path.exists() else 'missing'}",
                    expected="the file as it was written",
                    remedy=remedy,
                )
        return dict(found)


def cells_of(wanted: Reproduction, data: list[DataSet], seeds: int) -> list[Cell]:
    """All cells, seed by seed: a first seed of everything comes before a second of anything."""
    for one in data:
        for row in wanted.rows:
            _require_tier(wanted, row, one)
    return [
        Cell(data=one, row=row, seed=seed)
        for seed in range(seeds)
        for one in data
        for row in wanted.rows
    ]


def _require_tier(wanted: Reproduction, row: Row, data: DataSet) -> None:
    """A row whose settings nothing would read is refused: it would be another row's copy."""
    tier = data.config.debias.tier
    if row.tier and row.tier != tier:
        raise ConfigError(
            f"{wanted.name}, row {row.key}, on {data.name}: its settings are not read where "
            f"debias.tier is {tier!r}",
            expected=f"debias.tier={row.tier}",
            remedy=f"add --set debias.tier={row.tier}, or leave the row out with --rows",
        )


def named(cells: list[Cell], only: str) -> Cell:
    for cell in cells:
        if cell.name == only:
            return cell
    raise ConfigError(
        f"--only {only}: there is no such cell",
        expected=f"DATA/ROW/SEED, such as {cells[0].name}",
        remedy="--dry-run lists the cells",
    )
