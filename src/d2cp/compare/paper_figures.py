"""The paper's figures, for reading beside ours: all of them in `paper.json`, with their source.

They are the paper's own, on ViT-B/16, or copied by it from the rivals' papers on other backbones:
worst-group accuracy and its deviation, mean accuracy and its deviation, in percent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple


class Figure(NamedTuple):
    worst_group: float
    worst_group_std: float | None = None
    mean: float | None = None
    mean_std: float | None = None


@cache
def paper() -> Mapping[str, Any]:
    """{"source", "tables": {table: {"source", "figures": {data: {split: {row: figures}}}}}}"""
    text = (files("d2cp.compare") / "paper.json").read_text(encoding="utf-8")
    whole: Mapping[str, Any] = json.loads(text)
    return whole


def published(table: str, data: str, split: str) -> Mapping[str, Mapping[str, float]]:
    """Figures by row of a table of the paper; empty where it has none for this data set."""
    figures = paper()["tables"][table]["figures"]
    found: Mapping[str, Mapping[str, float]] = figures.get(data, {}).get(split, {})
    return found


TABLE_1: dict[str, dict[str, Figure]] = {
    data: {method: Figure(**values) for method, values in splits["test"].items()}
    for data, splits in paper()["tables"]["table1"]["figures"].items()
}
