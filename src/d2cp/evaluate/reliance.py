"""How far two models lean on each finding, before and after, and whether the leaning rose."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from d2cp.core.arrays import UNKNOWN, Floats, Ints
from d2cp.data.table import SPLIT_NAMES
from d2cp.evaluate.leaning import leaning
from d2cp.scan.finding import Finding
from d2cp.scan.scanned_rows import ScannedRows

BEFORE, AFTER = "erm", "d2cp"
LEAST = 0.0005  # what is printed as +0.0 points is no rise
_Z = 1.959964


def reliance(
    answers: Mapping[str, Ints],
    table: ScannedRows,
    findings: Sequence[Finding],
    used: Collection[int] = (),
) -> dict[str, Any]:
    """`answers` are predictions of every row, UNKNOWN where there is none, by model: `d2cp`, and
    `erm` where there is a control. Counted on test images, on validation where there are none.
    `used` are the ranks that the pseudo attribute was made of."""
    rows = scored_rows(answers[AFTER], table)
    leans = {}
    for name, predicted in answers.items():
        alone = np.full(len(predicted), UNKNOWN, dtype=np.int64)
        alone[rows] = predicted[rows]
        leans[name] = leaning(alone, table, findings)
    listed = []
    for i, finding in enumerate(findings):
        entry: dict[str, Any] = {
            "rank": finding.rank,
            "name": finding.name,
            "used": finding.rank in used,
        }
        for name, lean in leans.items():
            own = lean["findings"][i]
            kept = {key: own[key] for key in ("gap", "interval", "leans")}
            entry[name] = {**kept, "victims": len(own["victims"])}
        if BEFORE in answers:
            wrong = [(answers[m][rows] != table.y[rows]).astype(float) for m in (BEFORE, AFTER)]
            against = finding.value[rows] != table.y[rows]
            change, interval = change_of_gap(wrong[1] - wrong[0], against, table.y[rows])
            entry |= {"change": change, "change_interval": interval}
            entry["rise"] = change is not None and change >= LEAST
            entry["beyond_chance"] = interval is not None and (interval[0] > 0 or interval[1] < 0)
        listed.append({**entry, "sentence": _sentence(entry)})
    whole = leans[AFTER]
    return {"images": whole["images"], "splits": whole["splits"], "findings": listed}


def scored_rows(predicted: Ints, table: ScannedRows) -> Ints:
    """Answered images of neither train nor val; of val where there are no others."""
    answered = predicted != UNKNOWN
    seen = np.isin(table.split, [SPLIT_NAMES.index(s) for s in ("train", "val")])
    fresh = answered & ~seen
    val = answered & (table.split == SPLIT_NAMES.index("val"))
    return np.flatnonzero(fresh if fresh.any() else val).astype(np.int64)


def change_of_gap(change: Floats, against: Any, y: Ints) -> tuple[float | None, list[float] | None]:
    """How much the gap (errors against the finding minus errors with it, classes counted alike)
    grows when each image's error changes by `change` (-1, 0 or 1), with its 95% interval: the
    images are the same before and after, so it is narrower than the two gaps' own."""
    gaps, variances = [], []
    for c in np.unique(y):
        sides = [change[(y == c) & side] for side in (against, ~against)]
        if min(len(side) for side in sides):
            gaps.append(float(sides[0].mean() - sides[1].mean()))
            variances.append(sum(float(side.var()) / len(side) for side in sides))
    if not gaps:
        return None, None
    whole = float(np.mean(gaps))
    spread = _Z * math.sqrt(sum(variances)) / len(gaps)
    return whole, [max(-2.0, whole - spread), min(2.0, whole + spread)]


def _sentence(entry: Mapping[str, Any]) -> str:
    after = entry[AFTER]["gap"]
    if after is None:
        return "No class has images both with and against it: nothing can be said."
    if BEFORE not in entry:
        return f"{_points(after)} points more errors against it than with it."
    low, high = entry["change_interval"]
    moved = (
        f"from {_points(entry[BEFORE]['gap'])} to {_points(after)} points more errors against it "
        f"than with it (change {_points(entry['change'])} [{_points(low)}, {_points(high)}])"
    )
    chance = "" if entry["beyond_chance"] else ", within chance,"
    if abs(entry["change"]) < LEAST:
        return f"Reliance stays {moved}."
    return f"Reliance {'ROSE' if entry['rise'] else 'fell'}{chance} {moved}."


def transplant_sentence(moved: Mapping[str, Any], class_names: Sequence[str]) -> str:
    """What putting the cue into other images does to each model; `moved` is of
    `d2cp.scan.model_transplant`."""
    parts = []
    for name, words in ((BEFORE, "before"), (AFTER, "after")):
        own = moved.get(name)
        if own and own["gap"] is not None:
            parts.append(
                f"{words}, {own['flips']:.0%} of {own['images']} images go over to "
                f"“{class_names[moved['towards']]}” (control {own['control']:.0%})"
            )
    return f"With its cue put in: {'; '.join(parts)}." if parts else ""


def _points(value: float) -> str:
    return f"{100 * value:+.1f}"
