"""The images of a finished scan, from its own files: no image is read, no data set opened."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from d2cp.core.csv_columns import read_columns, whole_number
from d2cp.core.records import ScanRecord
from d2cp.core.typed_json import read_typed
from d2cp.data.table import SPLIT_NAMES
from d2cp.scan.batched import Ints
from d2cp.scan.scan_files import AGAIN, FINDINGS, SCORES


@dataclass(frozen=True)
class ScannedRows:
    """Row i is row i of every finding's values."""

    ids: list[str]
    y: Ints
    split: NDArray[np.int8]
    class_names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def split_names(self) -> tuple[str, ...]:
        present = np.unique(self.split)
        return tuple(name for code, name in enumerate(SPLIT_NAMES) if code in present)

    def rows(self, split: str) -> Ints:
        return np.flatnonzero(self.split == SPLIT_NAMES.index(split)).astype(np.int64)


def read_scanned_rows(folder: Path) -> ScannedRows:
    """Of the scan's folder; a scan without findings lists no images."""
    found = read_typed(folder / FINDINGS, ScanRecord, remedy=AGAIN)
    names = tuple(found["data"]["class_names"])
    columns = read_columns(
        folder / SCORES,
        {"image": str, "split": SPLIT_NAMES.index, "class": names.index, "finding": whole_number},
    )
    # Findings follow each other, each with every image.
    n = sum(finding == 1 for finding in columns["finding"])
    y, split = np.array(columns["class"][:n], np.int64), np.array(columns["split"][:n], np.int8)
    return ScannedRows(columns["image"][:n], y, split, names)
