"""What a scan shows beside its findings: the data set's counts, pictures, images to review."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from d2cp.core.files import read_json, write_json
from d2cp.data.store import ImageStore
from d2cp.data.table import Table
from d2cp.scan.finding import Finding, Scan
from d2cp.scan.photo_pictures import draw_findings
from d2cp.scan.review import review
from d2cp.scan.scan_files import FINDINGS

DETAILS = ("data", "cells", "pictures", "review")
"""Keys added to findings.json; a scan without them is made anew."""


def add_details(found: Scan, table: Table, store: ImageStore, folder: Path, seed: int) -> None:
    """Draw the pictures into `folder` and add to its findings.json:
    data {name, class_names, counts, warnings, notes}, cells {rank: {split: counts [class][value]}},
    pictures [{finding, file, kind, title, caption}], review {copies, labels, …_total}."""
    path = folder / FINDINGS
    more: dict[str, Any] = {
        "data": {
            "name": table.name,
            "class_names": list(table.class_names),
            "counts": table.counts(),
            "warnings": list(table.warnings),
            "notes": list(table.notes),
        },
        "cells": {str(f.rank): _cells(f, table) for f in found.findings},
        "pictures": draw_findings(found, table, store, folder, seed),
        "review": review(found, table, store),
    }
    write_json(path, {**read_json(path), **more})


def _cells(finding: Finding, table: Table) -> dict[str, list[list[int]]]:
    counts = {}
    for split in table.split_names:
        rows = table.rows(split)
        cells = np.zeros((table.n_classes, finding.values), dtype=np.int64)
        np.add.at(cells, (table.y[rows], finding.value[rows]), 1)
        counts[split] = cells.tolist()
    return counts
