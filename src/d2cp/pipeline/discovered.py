"""What stage 1 hands on, in memory and on disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2cp.core.csv_columns import finite, read_columns, whole_number
from d2cp.core.files import write_csv
from d2cp.core.records import MineSummary
from d2cp.core.typed_json import read_typed
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
    columns = read_columns(folder / LABELS, {"pseudo": whole_number, "score": finite})
    again = f"delete {folder} and run again; other stages are kept"
    summary = read_typed(folder / SUMMARY, MineSummary, remedy=again)
    pseudo = np.array(columns["pseudo"], dtype=np.int64)
    score = np.array(columns["score"], dtype=np.float64)
    return Discovery(pseudo, score, summary["values"], dict(summary))


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
