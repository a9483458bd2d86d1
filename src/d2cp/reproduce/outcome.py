"""Cells to a table: mean and deviation over seeds, beside the paper's figures and its order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2cp.compare.paper_figures import paper, published
from d2cp.evaluate.metrics import over_seeds
from d2cp.reproduce.cells import Cell
from d2cp.reproduce.tables import Reproduction

SCHEMA = 1
HEADER = (
    *("table", "data", "split", "row", "name", "metric", "mean", "std", "seeds", "by_seed"),
    *("paper", "paper_std"),
)
Found = tuple[Cell, dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One row of a table by one metric; shares, not percent."""

    data: str
    split: str
    row: str
    name: str
    metric: str
    mean: float
    std: float | None
    by_seed: dict[int, float]
    paper: float | None = None
    paper_std: float | None = None


def figures(wanted: Reproduction, found: Sequence[Found]) -> list[Figure]:
    """In the order of the rows; a cell brings one or several lines."""
    values: dict[tuple[str, str, str, str], dict[int, float]] = {}
    names: dict[str, str] = {}
    benchmarks = {cell.data.name: cell.data.benchmark for cell, _ in found}
    for cell, content in found:
        for line in content["lines"]:
            key = line.get("key", cell.row.key)
            names[key] = line.get("name", cell.row.name)
            for metric in wanted.metrics:
                if metric.key in line["figures"]:
                    place = (cell.data.name, line["split"], metric.key, key)
                    values.setdefault(place, {})[cell.seed] = line["figures"][metric.key]
    made = []
    for (data, split, metric_key, key), by_seed in values.items():
        theirs = published(wanted.name, benchmarks[data], split).get(key, {})
        spread = over_seeds([by_seed[s] for s in sorted(by_seed)])
        made.append(
            Figure(
                data=data,
                split=split,
                row=key,
                name=names[key],
                metric=metric_key,
                mean=spread.mean,
                std=spread.std,
                by_seed=dict(sorted(by_seed.items())),
                paper=_share(theirs.get(metric_key)),
                paper_std=_share(theirs.get(f"{metric_key}_std")),
            )
        )
    return made


@dataclass(frozen=True, kw_only=True)
class Order:
    """Spearman's rank correlation between our rows and the paper's, by the first metric."""

    data: str
    split: str
    correlation: float
    rows: int
    by_seed: dict[int, float | None]  # of the rows as one seed has them; none where they are equal


def rank_correlation(left: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    """Spearman's: the correlation of ranks, equal values sharing theirs. scipy's takes three
    seconds to import, which is most of what a finished table needs."""
    one, other = (_ranks(values) - (len(values) + 1) / 2 for values in (left, right))
    return float(one @ other / np.sqrt((one @ one) * (other @ other)))


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    below = (values[None, :] < values[:, None]).sum(1).astype(np.float64)
    equal = (values[None, :] == values[:, None]).sum(1)
    return np.asarray(below + (equal + 1) / 2)


def orders(wanted: Reproduction, made: Sequence[Figure]) -> list[Order]:
    """`test_balanced` has no column in the paper: its rows are ordered against those of `test`."""
    metric = wanted.metrics[0].key
    compared = []
    for data, split in dict.fromkeys((f.data, f.split) for f in made):
        other = "test" if split == "test_balanced" else split
        theirs = {
            f.row: f.paper
            for f in made
            if (f.data, f.split, f.metric) == (data, other, metric) and f.paper is not None
        }
        ours = [
            f
            for f in made
            if (f.data, f.split, f.metric) == (data, split, metric) and f.row in theirs
        ]
        beside = np.array([theirs[f.row] for f in ours], dtype=np.float64)
        rho = _compared([f.mean for f in ours], beside)
        if rho is None:
            continue
        whole = [seed for seed in ours[0].by_seed if all(seed in f.by_seed for f in ours)]
        by_seed = {seed: _compared([f.by_seed[seed] for f in ours], beside) for seed in whole}
        compared.append(
            Order(data=data, split=split, correlation=rho, rows=len(ours), by_seed=by_seed)
        )
    return compared


def _compared(ours: Sequence[float], theirs: NDArray[np.float64]) -> float | None:
    """None where there is no order to compare: two rows, or rows that are all equal."""
    values = np.array(ours, dtype=np.float64)
    if len(values) < 3 or not np.ptp(values) or not np.ptp(theirs):
        return None
    return rank_correlation(values, theirs)


def outcome(wanted: Reproduction, found: Sequence[Found], about: dict[str, Any]) -> dict[str, Any]:
    """The content of table.json."""
    made = figures(wanted, found)
    return {
        "schema": SCHEMA,
        "table": wanted.name,
        "title": wanted.title,
        **about,
        "metrics": [asdict(metric) for metric in wanted.metrics],
        "sweep": wanted.sweep,
        "figures": [asdict(figure) for figure in made],
        "rank_correlation": [asdict(order) for order in orders(wanted, made)],
        "paper": {
            "source": paper()["source"],
            "where": paper()["tables"][wanted.name]["source"],
        },
        "selection": sorted({s for _, content in found for s in selections(content)}),
        "seconds": round(sum(content["seconds"] for _, content in found), 1),
        "cells": {cell.name: cell.identity for cell, _ in found},
    }


def selections(content: dict[str, Any]) -> set[str]:
    return {str(result["selection"]) for result in content.get("results", [])}


def csv_rows(whole: dict[str, Any]) -> list[list[Any]]:
    """The rows of table.csv, in the order of HEADER."""
    rows = []
    for f in whole["figures"]:
        known = {**f, "table": whole["table"], "seeds": len(f["by_seed"])}
        known["by_seed"] = " ".join(f"{value:.4f}" for value in f["by_seed"].values())
        rows.append([_cell(known[name]) for name in HEADER])
    return rows


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    return f"{value:.4f}" if isinstance(value, float) else value


def _share(percent: float | None) -> float | None:
    return None if percent is None else percent / 100
