"""The page of a reproduced table: charts, all figures beside the paper's, how it was made."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from d2cp.core.text import visible
from d2cp.report.encode import picture
from d2cp.report.html import embedded_json, render
from d2cp.report.words import flatten
from d2cp.reproduce.chart import Chart

FIGURES = ("schema", "figures", "rank_correlation", "metrics", "paper", "cells", "table", "title")


@dataclass(frozen=True, kw_only=True)
class Part:
    """One data set and split."""

    data: str
    split: str
    picture: str
    width: int
    headings: Sequence[str]
    lines: Sequence[tuple[str, Sequence[str]]]
    order: str


def page(
    whole: Mapping[str, Any],
    charts: Mapping[tuple[str, str], Chart],
    pictures: Sequence[tuple[str, Path]] = (),
) -> str:
    """`whole` is the content of table.json."""
    return render(
        "reproduce.html.jinja",
        {
            "title": f"{whole['title']}: D2CP",
            "name": whole["title"],
            "tables": [_part(whole, data, split, c) for (data, split), c in charts.items()],
            "pictures": [(visible(title), picture(path)) for title, path in pictures],
            "source": whole["paper"],
            "facts": flatten({k: v for k, v in whole.items() if k not in FIGURES}),
            "payload": embedded_json({"schema": 1}),
        },
    )


def _part(whole: Mapping[str, Any], data: str, split: str, drawn: Chart) -> Part:
    own = [f for f in whole["figures"] if (f["data"], f["split"]) == (data, split)]
    metrics = whole["metrics"]
    beside = {f["metric"] for f in own if f["paper"] is not None}  # what the paper has figures for
    headings = []
    for metric in metrics:
        headings.append(metric["heading"])
        headings += ["paper"] if metric["key"] in beside else []
    headings.append(f"{metrics[0]['heading']}, by seed")
    lines = []
    for row in dict.fromkeys(f["row"] for f in own):
        by = {f["metric"]: f for f in own if f["row"] == row}
        cells = []
        for metric in metrics:
            f = by.get(metric["key"], {})
            cells.append(spread(f.get("mean"), f.get("std")))
            if metric["key"] in beside:
                cells.append(spread(f.get("paper"), f.get("paper_std")))
        first = by[metrics[0]["key"]]
        cells.append(", ".join(f"{100 * v:.1f}" for v in first["by_seed"].values()))
        lines.append((visible(first["name"]), cells))
    order = next(
        (o for o in whole["rank_correlation"] if (o["data"], o["split"]) == (data, split)), None
    )
    return Part(
        data=visible(data),
        split=split,
        picture="data:image/png;base64," + base64.b64encode(drawn.png()).decode("ascii"),
        width=drawn.width,
        headings=headings,
        lines=lines,
        order="" if order is None else correlation(order),
    )


def spread(mean: float | None, std: float | None) -> str:
    """In percent; empty where there is no figure."""
    if mean is None:
        return ""
    return f"{100 * mean:.1f}" + ("" if std is None else f" ± {100 * std:.1f}")


def correlation(order: Mapping[str, Any]) -> str:
    seeds = order.get("by_seed", {}).values()
    each = ", ".join("none" if rho is None else f"{rho:+.2f}" for rho in seeds)
    return (
        f"{order['data']}, {order['split']}: rank correlation of {order['rows']} rows with the "
        f"paper's {order['correlation']:+.2f}"
        + (f" (seed by seed {each})" if len(seeds) > 1 else "")
    )
