"""Cells to a comparison: figures over seeds, paired differences to D2CP, the paper's figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import t as student

from d2cp.compare.paper_figures import TABLE_1
from d2cp.evaluate.columns import COLUMNS, COSTS, WORST
from d2cp.evaluate.metrics import over_seeds

SCHEMA = 1
OURS = "d2cp"
FACTS = (
    *("tier", "params", "group_labels", "mined_groups", "notes"),
    *(cost.key for cost in COSTS),
)
HEADER = (
    *("method", "seed", "split", "selection", "group_labels", "grouping"),
    *(f"{column.key}{end}" for column in COLUMNS for end in ("", "_low", "_high")),
    *(cost.key for cost in COSTS),
    "tier",
)


def flat_results(cells: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One entry a (method, seed, split): a result with what it cost."""
    return [
        {**result, **{key: cell[key] for key in FACTS}}
        for cell in cells
        for result in cell["results"]
    ]


def labels_used(line: Mapping[str, Any]) -> str:
    """Where true groups were used, and whether mined ones trained the method, in a few words."""
    mined = ["mined"] if line.get("mined_groups") else []
    return "+".join([*line["group_labels"], *mined]) or "none"


def tidy_rows(results: Sequence[dict[str, Any]]) -> list[list[Any]]:
    """The rows of compare.csv, in the order of HEADER."""
    rows = []
    for r in results:
        known = {**r, "group_labels": labels_used(r)}
        for key, (low, high) in r["intervals"].items():
            known |= {f"{key}_low": low, f"{key}_high": high}
        rows.append([known[name] for name in HEADER])
    return rows


def paired_differences(results: Sequence[dict[str, Any]], split: str) -> dict[str, dict[str, Any]]:
    """D2CP minus each method, seed by seed: mean worst-group difference and a 95% t interval."""
    worst: dict[str, dict[int, float]] = {}
    for r in results:
        if r["split"] == split:
            worst.setdefault(r["method"], {})[r["seed"]] = r[WORST.key]
    ours = worst.get(OURS, {})
    found: dict[str, dict[str, Any]] = {}
    for method, theirs in worst.items():
        seeds = sorted(set(ours) & set(theirs))
        if method == OURS or not seeds:
            continue
        differences = np.array([ours[s] - theirs[s] for s in seeds])
        interval = None
        if len(seeds) > 1:
            half = student.ppf(0.975, len(seeds) - 1) * differences.std(ddof=1)
            half = float(half) / math.sqrt(len(seeds))
            interval = [float(differences.mean()) - half, float(differences.mean()) + half]
        found[method] = {
            WORST.key: float(differences.mean()),
            "interval": interval,
            "seeds": seeds,
        }
    return found


def image_interval(results: Sequence[dict[str, Any]], key: str) -> list[float]:
    """95% interval, over test images, of the mean over seeds of one method's figure.

    Seeds are scored on the same images, so their luck with them is shared: bounds are averaged,
    as they would not be if every seed had test images of its own.
    """
    low, high = np.mean([r["intervals"][key] for r in results], axis=0).tolist()
    return [low, high]


def by_method(results: Sequence[dict[str, Any]], split: str) -> list[dict[str, Any]]:
    """One line a method: figures over seeds, costs averaged, in the order of the results."""
    lines = []
    for method in dict.fromkeys(r["method"] for r in results):
        own = [r for r in results if r["method"] == method and r["split"] == split]
        if not own:
            continue
        line: dict[str, Any] = {k: own[0][k] for k in ("method", "group_labels", "mined_groups")}
        for column in COLUMNS:
            spread = over_seeds([r[column.key] for r in own])
            line[column.key], line[f"{column.key}_std"] = spread.mean, spread.std
        line["intervals"] = {c.key: image_interval(own, c.key) for c in COLUMNS}
        line |= {cost.key: float(np.mean([r[cost.key] for r in own])) for cost in COSTS}
        line |= {"tier": own[0]["tier"], "grouping": own[0]["grouping"]}
        lines.append(line)
    return lines


def paper_column(data: str) -> dict[str, dict[str, float | None]] | None:
    """The paper's figures, where the data set is one of the paper's."""
    column = TABLE_1.get(data)
    return None if column is None else {name: f._asdict() for name, f in column.items()}


def comparison(
    cells: Sequence[dict[str, Any]], *, data: str, about: dict[str, Any]
) -> dict[str, Any]:
    """The content of compare.json; `about` is budget, selection, backbone, machine."""
    results = flat_results(cells)
    splits = list(dict.fromkeys(r["split"] for r in results))
    return {
        "schema": SCHEMA,
        "data": data,
        **about,
        "results": results,
        "summary": {split: by_method(results, split) for split in splits},
        "paired": {split: paired_differences(results, split) for split in splits},
        "paper": paper_column(data),
    }
