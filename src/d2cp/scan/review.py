"""What fools everybody first: copies across splits, and labels that may be wrong.

A label error and a minority image of a shortcut look alike to one lens: both contradict it. They
are told apart by the other lenses. Where a picture goes against one finding, and another one sides
with its label, it is a minority image; where every finding, by at least two different lenses,
contradicts the label, and each is sure, the label itself is to be looked at. A finding that hardly
tells the class has no say.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from d2cp.data.copies import across_splits, thumbnails
from d2cp.data.source import ColouredSource
from d2cp.data.store import ImageStore
from d2cp.data.table import SPLIT_NAMES, Table
from d2cp.scan.batched import Doubles, Ints
from d2cp.scan.evidence import certainty
from d2cp.scan.finding import Finding, Scan
from d2cp.scan.values import beyond_chance

LEAST_FINDINGS = 2
"""Lenses that have to agree against a label."""
TELLS = 0.15
"""Agreement beyond chance from which a finding can contradict a label at all."""
SURE = 0.5
"""A contradiction counts where the score is surer than this share of its value's images."""
LISTED = 200


def review(found: Scan, table: Table, store: ImageStore) -> dict[str, Any]:
    """Both lists, with how many there are; at most LISTED images each."""
    copies = _copies(table, store)
    suspects, sure = suspected_labels(found.findings, table.y)
    return {
        "copies": [
            {
                "image": str(table.ids[row]),
                "split": SPLIT_NAMES[table.split[row]],
                "copy_of": str(table.ids[other]),
                "copy_split": SPLIT_NAMES[table.split[other]],
                "same_class": bool(table.y[row] == table.y[other]),
            }
            for row, other in copies[:LISTED]
        ],
        "copies_total": len(copies),
        "labels": [
            {
                "image": str(table.ids[row]),
                "split": SPLIT_NAMES[table.split[row]],
                "class": table.class_names[table.y[row]],
                "looks_like": table.class_names[_majority(found.findings, int(row))],
                "sureness": round(float(s), 3),
            }
            for row, s in zip(suspects[:LISTED], sure[:LISTED], strict=True)
        ],
        "labels_total": len(suspects),
    }


def suspected_labels(findings: tuple[Finding, ...], y: Ints) -> tuple[Ints, Doubles]:
    """Rows whose label every finding contradicts surely, the surest first, and how sure the least
    sure of them is: the share of its value's images that it exceeds."""
    classes = int(y.max(initial=1)) + 1
    real = [
        f for f in findings if f.outcome != "none" and beyond_chance(f.agreement, classes) >= TELLS
    ]
    if len({f.lens for f in real}) < LEAST_FINDINGS:
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    against = np.stack([f.value != y for f in real])
    sure = np.stack([share_below(certainty(f.scores, f.threshold), f.value) for f in real])
    least = np.where(against, sure, 0.0).min(axis=0)
    rows = np.flatnonzero(least > SURE).astype(np.int64)
    order = rows[np.argsort(-least[rows], kind="stable")]
    return order, least[order]


def share_below(sure: Doubles, value: Ints) -> Doubles:
    """The share of images of the same value that are less sure [N]."""
    shares = np.zeros(len(sure))
    for v in np.unique(value):
        mine = np.flatnonzero(value == v)
        ranks = np.argsort(np.argsort(sure[mine], kind="stable"), kind="stable")
        shares[mine] = ranks / len(mine)
    return shares


def _majority(findings: tuple[Finding, ...], row: int) -> int:
    """The class that most findings take the image for."""
    values = [int(f.value[row]) for f in findings if f.outcome != "none"]
    return max(sorted(set(values)), key=values.count)


def _copies(table: Table, store: ImageStore) -> list[tuple[int, int]]:
    if isinstance(table.source, ColouredSource):
        return []  # the embedded sets are known, and their digits look much alike
    return across_splits(thumbnails(store), np.arange(len(table), dtype=np.int64), table)
