"""Every image of a run as columns: table, pseudo attribute, answers before and after."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from d2cp.core.arrays import UNKNOWN, Ints
from d2cp.core.csv_columns import finite, read_columns, whole_number
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

    def require(self, run: RunDirectory, classes: int, attributes: int, values: int) -> None:
        """Refuse numbers that name no class, attribute or suspected value."""
        known = UNKNOWN
        for stage, column, lowest, count in (
            ("data", self.y, 0, classes),
            ("data", self.a, known, attributes),
            ("mine", self.pseudo, known, values),
            ("evaluate", self.before, known, classes),
            ("evaluate", self.after, known, classes),
        ):
            if column is not None and (column.min() < lowest or column.max() >= count):
                raise _mismatch(run.path / stage)


def read_rows(run: RunDirectory) -> Rows:
    path = run.artifact("data") / "table.csv"
    table = read_columns(
        path, {"row": whole_number, "id": str, "split": str, "y": whole_number}, {"a": whole_number}
    )
    n = len(table["row"])
    if not n or table["row"] != list(range(n)):
        raise _mismatch(path)
    columns = {name: np.full(n, UNKNOWN, dtype=np.int64) for name in ("pseudo", "erm", "d2cp")}
    floats = {name: np.full(n, np.nan) for name in ("score", "erm_p", "d2cp_p")}
    optional = {name: _integer for name in columns} | {name: _float for name in floats}
    for stage, file in (("mine", "pseudo.csv"), ("evaluate", "predictions.csv")):
        if not run.has(stage):
            continue
        path = run.file(stage, file)
        found = read_columns(path, {"row": whole_number}, optional)
        where = np.array(found["row"], dtype=np.int64)
        if len(where) and (where.min() < 0 or where.max() >= n):
            raise _mismatch(path)
        for name, column in columns.items():
            if name in found and (name != "pseudo" or stage == "mine"):
                column[where] = found[name]
        for name, values in floats.items():
            if name in found:
                values[where] = found[name]
    return Rows(
        ids=table["id"],
        split=np.array(table["split"], dtype=np.str_),
        y=np.array(table["y"], dtype=np.int64),
        a=np.array(table["a"], dtype=np.int64) if "a" in table else None,
        pseudo=columns["pseudo"],
        score=floats["score"],
        before=columns["erm"],
        after=columns["d2cp"],
        before_p=floats["erm_p"],
        after_p=floats["d2cp_p"],
    )


def _integer(text: str) -> int:
    return whole_number(text) if text else UNKNOWN


def _float(text: str) -> float:
    return finite(text) if text else np.nan


def _mismatch(path: Path) -> RunError:
    return RunError(
        f"{path} does not agree with the run's table of images",
        expected="rows as written by d2cp",
        remedy=f"delete {path if path.is_dir() else path.parent} and run again; other stages are "
        "kept",
    )
