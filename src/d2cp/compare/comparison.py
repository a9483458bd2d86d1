"""Cells to a comparison: figures over seeds, paired differences to D2CP, the paper's figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import t as student

from d2cp.compare.paper_figures import TABLE_1
from d2cp.core.rng import numpy_generator
from d2cp.evaluate.metrics import over_seeds

SCHEMA = 1
OURS = "d2cp"
FACTS = ("tier", "trainable", "passes", "seconds", "params", "group_labels", "notes")
COLUMNS = (
    *("method", "seed", "split", "selection", "group_labels", "worst_group", "mean"),
    *("train_weighted_mean", "worst_group_low", "worst_group_high", "trainable", "passes"),
    *("seconds", "tier"),
)


def flat_results(cells: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One entry a (method, seed, split): a result with what it cost."""
    return [
        {**result, **{key: cell[key] for key in FACTS}}
        for cell in cells
        for result in cell["results"]
    ]


def tidy_rows(results: Sequence[dict[str, Any]]) -> list[list[Any]]:
    """The rows of compare.csv, in the order of COLUMNS."""
    rows = []
    for r in results:
        low, high = r["intervals"]["worst_group"]
        known = {**r, "group_labels": "+".join(r["group_labels"]) or "none"}
        known |= {"worst_group_low": low, "worst_group_high": high}
        rows.append([known[column] for column in COLUMNS])
    return rows


def paired_differences(results: Sequence[dict[str, Any]], split: str) -> dict[str, dict[str, Any]]:
    """D2CP minus each method, seed by seed: mean worst-group difference and a 95% t interval."""
    worst: dict[str, dict[int, float]] = {}
    for r in results:
        if r["split"] == split:
            worst.setdefault(r["method"], {})[r["seed"]] = r["worst_group"]
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
            "worst_group": float(differences.mean()),
            "interval": interval,
            "seeds": seeds,
        }
    return found


def image_interval(results: Sequence[dict[str, Any]], resamples: int = 1000) -> tuple[float, float]:
    """95% interval, over test images, of the mean over seeds of one method's worst group."""
    generator = numpy_generator(0, "compare/bootstrap")
    draws = np.zeros(resamples)
    for r in results:
        n = np.array([g["n"] for g in r["groups"].values()])
        accuracy = np.array([g["accuracy"] for g in r["groups"].values()])
        draws += (generator.binomial(n, accuracy, size=(resamples, len(n))) / n).min(axis=1)
    low, high = np.percentile(draws / max(1, len(results)), [2.5, 97.5])
    return float(low), float(high)


def by_method(results: Sequence[dict[str, Any]], split: str) -> list[dict[str, Any]]:
    """One line a method: figures over seeds, costs averaged, in the order of the results."""
    lines = []
    for method in dict.fromkeys(r["method"] for r in results):
        own = [r for r in results if r["method"] == method and r["split"] == split]
        if not own:
            continue
        line: dict[str, Any] = {"method": method, "group_labels": own[0]["group_labels"]}
        for key in ("worst_group", "mean", "train_weighted_mean"):
            spread = over_seeds([r[key] for r in own])
            line[key], line[f"{key}_std"] = spread.mean, spread.std
        line["interval"] = list(image_interval(own))
        line["trainable"], line["tier"] = own[0]["trainable"], own[0]["tier"]
        line["passes"] = round(float(np.mean([r["passes"] for r in own])))
        line["seconds"] = float(np.mean([r["seconds"] for r in own]))
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
