"""On which findings of a scan does a model lean, and whom does that cost?

A finding points at a class. Where it points at an image's own class the image goes with it, else
against it. A model that leans on the finding is wrong more often against it than with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from d2cp.core.arrays import UNKNOWN, Bools, Ints
from d2cp.data.table import SPLIT_NAMES
from d2cp.evaluate.intervals import Interval, share_interval
from d2cp.scan.evidence import certainty
from d2cp.scan.finding import Finding
from d2cp.scan.scanned_rows import ScannedRows

TRAIN = SPLIT_NAMES.index("train")


def difference(wrong_against: Bools, wrong_with: Bools) -> tuple[float, Interval]:
    """Difference of two shares with its 95% interval: distances to Wilson's bounds added in
    quadrature (Newcombe 1998)."""
    a, b = float(wrong_against.mean()), float(wrong_with.mean())
    low_a, high_a = share_interval(a, len(wrong_against))
    low_b, high_b = share_interval(b, len(wrong_with))
    below = math.hypot(a - low_a, high_b - b)
    above = math.hypot(high_a - a, b - low_b)
    return a - b, Interval(max(-1.0, a - b - below), min(1.0, a - b + above))


def leaning(predicted: Ints, table: ScannedRows, findings: Sequence[Finding]) -> dict[str, Any]:
    """Figures for every finding, over the images that are answered and were not trained on; over
    all answered ones where there are no others."""
    answered = predicted != UNKNOWN
    fresh = answered & (table.split != TRAIN)
    rows = np.flatnonzero(fresh if fresh.any() else answered)
    return {
        "images": len(rows),
        "splits": [
            s for s in table.split_names if (table.split[rows] == SPLIT_NAMES.index(s)).any()
        ],
        "accuracy": float((predicted[rows] == table.y[rows]).mean()),
        "findings": [_lean(predicted, table, rows, finding) for finding in findings],
    }


def _lean(predicted: Ints, table: ScannedRows, rows: Ints, finding: Finding) -> dict[str, Any]:
    y, value = table.y[rows], finding.value[rows]
    wrong, against = predicted[rows] != y, value != y
    classes = [
        _of_class(name, wrong[y == c], against[y == c]) for c, name in enumerate(table.class_names)
    ]
    gaps = [c for c in classes if c["gap"] is not None]
    gap, interval = _mean(gaps)
    victims = rows[wrong & against & (predicted[rows] == value)]
    sure = certainty(finding.scores[victims], finding.threshold)
    ordered = victims[np.argsort(-sure, kind="stable")]
    found = {
        "rank": finding.rank,
        "name": finding.name,
        "gap": gap,
        "interval": interval,
        "leans": interval is not None and interval[0] > 0,
        "classes": classes,
        "victims": [
            {
                "image": table.ids[row],
                "split": SPLIT_NAMES[table.split[row]],
                "class": table.class_names[table.y[row]],
                "predicted": table.class_names[predicted[row]],
            }
            for row in ordered
        ],
    }
    return {**found, "sentence": _sentence(found)}


def _of_class(name: str, wrong: Bools, against: Bools) -> dict[str, Any]:
    with_it, contrary = wrong[~against], wrong[against]
    both = len(with_it) and len(contrary)
    gap, interval = difference(contrary, with_it) if both else (None, None)
    return {
        "class": name,
        "with": len(with_it),
        "against": len(contrary),
        "wrong_with": float(with_it.mean()) if len(with_it) else None,
        "wrong_against": float(contrary.mean()) if len(contrary) else None,
        "gap": gap,
        "interval": None if interval is None else list(interval),
    }


def _mean(classes: list[dict[str, Any]]) -> tuple[float | None, list[float] | None]:
    """Classes counted alike; their distances to the bounds added in quadrature."""
    if not classes:
        return None, None
    n = len(classes)
    gap = sum(c["gap"] for c in classes) / n
    below = math.sqrt(sum((c["gap"] - c["interval"][0]) ** 2 for c in classes)) / n
    above = math.sqrt(sum((c["interval"][1] - c["gap"]) ** 2 for c in classes)) / n
    return gap, [max(-1.0, gap - below), min(1.0, gap + above)]


def _sentence(found: dict[str, Any]) -> str:
    if found["interval"] is None:
        return "No class has images both with and against it: nothing can be said."
    low, high = found["interval"]
    points = (
        f"{100 * found['gap']:+.1f} points more errors against it than with it "
        f"[{100 * low:+.1f}, {100 * high:+.1f}]"
    )
    if low > 0:
        count = len(found["victims"])
        cost = f"; {count} image{'s' * (count != 1)} answered wrong the way it points"
        return f"The model leans on it: {points}{cost}."
    if high < 0:
        return f"The model errs the other way: {points}."
    return f"No leaning beyond chance: {points}."
