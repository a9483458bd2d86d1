"""What stage 1 hands on, in memory and on disk."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2cp.core.files import read_json, write_csv
from d2cp.data.table import SPLIT_NAMES
from d2cp.pipeline.context import Context
from d2cp.scan.finding import Scan

LABELS, SUMMARY = "pseudo.csv", "summary.json"


@dataclass(frozen=True)
class Discovery:
    """One pseudo attribute a row, and the summary with its verdict."""

    pseudo: NDArray[np.int64]
    score: NDArray[np.float64]
    values: int
    summary: dict[str, Any]
    scan: Scan | None = None
    """What the run started from, where it did."""


def load_discovery(folder: Path) -> Discovery:
    with (folder / LABELS).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    summary = read_json(folder / SUMMARY)
    pseudo = np.array([int(r["pseudo"]) for r in rows], dtype=np.int64)
    score = np.array([float(r["score"]) for r in rows], dtype=np.float64)
    return Discovery(pseudo, score, int(summary["values"]), summary)


def write_labels(
    folder: Path, context: Context, pseudo: NDArray[np.int64], score: NDArray[np.float64]
) -> None:
    table = context.table
    write_csv(
        folder / LABELS,
        ["row", "image", "split", "class", "pseudo", "score"],
        (
            (
                row,
                table.ids[row],
                SPLIT_NAMES[table.split[row]],
                table.class_names[table.y[row]],
                int(pseudo[row]),
                f"{score[row]:.6g}",
            )
            for row in range(len(table))
        ),
    )
