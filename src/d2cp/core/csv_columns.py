"""Columns of a CSV file that a stage wrote: all named ones there, every cell of its type."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from d2cp.errors import RunError

Cell = Callable[[str], Any]
LARGEST = 2**63


def whole_number(text: str) -> int:
    """What an array can hold."""
    value = int(text)
    if abs(value) >= LARGEST:
        raise ValueError("a number beyond 64 bits")
    return value


def finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number that is not finite")
    return value


def read_columns(
    path: Path, kinds: Mapping[str, Cell], optional: Mapping[str, Cell] | None = None
) -> dict[str, list[Any]]:
    """`kinds` must be there, `optional` may; other columns are not read."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file, strict=True)
        if len(set(header)) < len(header):
            raise ValueError("it names a column twice")
        wanted = {**kinds, **{k: v for k, v in (optional or {}).items() if k in header}}
        if missing := [name for name in wanted if name not in header]:
            raise ValueError(f"it has no column {missing[0]!r}")
        for line, row in enumerate(rows, start=2):
            if len(row) != len(header):
                raise ValueError(f"row {line} has {len(row)} fields, not {len(header)}")
        places = {name: header.index(name) for name in wanted}
        return {name: [kind(row[places[name]]) for row in rows] for name, kind in wanted.items()}
    except (OSError, ValueError, csv.Error) as error:
        raise RunError(
            f"{path} cannot be read: {error}",
            expected="the file as d2cp wrote it",
            remedy=f"delete {path.parent} and run again; other stages are kept",
        ) from error
