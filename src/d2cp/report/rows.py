"""Every image of a run as columns: table, pseudo attribute, answers before and after."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from d2cp.core.arrays import UNKNOWN, Ints
from d2cp.core.run_directory import RunDirectory
from d2cp.errors import RunError


@dataclass(frozen=True, kw_only=True)
class Rows:
    ids: list[str]
    split: NDArray[np.str_]
    y: Ints
    a: Ints | None
    pseudo: Ints
    score: NDArray[np.float64]
    before: Ints
    after: Ints
    before_p: NDArray[np.float64]
    after_p: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def answered(self) -> NDArray[np.bool_]:
        return np.asarray(self.after != UNKNOWN)

    def splits(self) -> list[str]:
        return list(dict.fromkeys(self.split.tolist()))


def read_rows(run: RunDirectory) -> Rows:
    table = _columns(run.artifact("data") / "table.csv")
    n = len(table["row"])
    _require_order(table["row"], run)
    columns = {name: np.full(n, UNKNOWN, dtype=np.int64) for name in ("pseudo", "erm", "d2cp")}
    floats = {name: np.full(n, np.nan) for name in ("score", "erm_p", "d2cp_p")}
    for stage, file in (("mine", "pseudo.csv"), ("evaluate", "predictions.csv")):
        path = run.path / stage / file
        if not run.has(stage) or not path.is_file():
            continue
        found = _columns(path)
        where = np.array(found["row"], dtype=np.int64)
        if len(where) and (where.min() < 0 or where.max() >= n):
            raise _mismatch(path)
        for name, column in columns.items():
            if name in found and (name != "pseudo" or stage == "mine"):
                column[where] = _integers(found[name])
        for name, values in floats.items():
            if name in found:
                values[where] = [float(v) if v else np.nan for v in found[name]]
    return Rows(
        ids=table["id"],
        split=np.array(table["split"], dtype=np.str_),
        y=_integers(table["y"]),
        a=_integers(table["a"]) if "a" in table else None,
        pseudo=columns["pseudo"],
        score=floats["score"],
        before=columns["erm"],
        after=columns["d2cp"],
        before_p=floats["erm_p"],
        after_p=floats["d2cp_p"],
    )


def _columns(path: Path) -> dict[str, list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        header = next(reader, [])
        rows = list(reader)
    try:
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(header)
    except ValueError as error:
        raise _mismatch(path) from error
    return {name: list(column) for name, column in zip(header, columns, strict=True)}


def _integers(values: list[str]) -> Ints:
    return np.array([int(v) if v else UNKNOWN for v in values], dtype=np.int64)


def _require_order(rows: list[str], run: RunDirectory) -> None:
    if rows != [str(number) for number in range(len(rows))]:
        raise _mismatch(run.path / "data" / "table.csv")


def _mismatch(path: Path) -> RunError:
    return RunError(
        f"{path} does not agree with the run's table of images",
        expected="rows as written by d2cp",
        remedy="delete the stage's folder and run again: the other stages are kept",
    )
