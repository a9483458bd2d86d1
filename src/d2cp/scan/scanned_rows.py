"""The images of a finished scan, from its own files: no image is read, no data set opened."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from d2cp.core.files import read_json
from d2cp.data.table import SPLIT_NAMES
from d2cp.scan.batched import Ints
from d2cp.scan.scan_files import FINDINGS, SCORES


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
    names = tuple(read_json(folder / FINDINGS)["data"]["class_names"])
    code = {name: i for i, name in enumerate(names)}
    ids, y, split = [], [], []
    with (folder / SCORES).open(newline="", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            if line["finding"] != "1":
                break  # findings follow each other, each with every image
            ids.append(line["image"])
            y.append(code[line["class"]])
            split.append(SPLIT_NAMES.index(line["split"]))
    return ScannedRows(ids, np.array(y, np.int64), np.array(split, np.int8), names)
