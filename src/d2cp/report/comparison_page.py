"""The comparison report: methods over seeds, beside the paper's figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from d2cp.core.text import visible
from d2cp.evaluate.columns import COLUMNS, COSTS, MEAN, WORST, groupings
from d2cp.report import plots
from d2cp.report.html import embedded_json
from d2cp.report.outcomes import Figure, headline_rank
from d2cp.report.words import count, flatten, phrase

OURS = "d2cp"
PUBLISHED = (WORST, MEAN)  # what the paper prints
FIGURES = ("schema", "results", "summary", "paired", "paper", "skipped")


@dataclass(frozen=True, kw_only=True)
class Line:
    """One method on one split, over its seeds."""

    method: str
    name: str
    seeds: int
    figures: tuple[Figure, ...]
    """In the order of the columns of results: the worst group first."""
    group_labels: str
    costs: tuple[tuple[float, str], ...]
    difference: Figure | None
    published: tuple[float | None, ...]
    drawing: Markup

    @property
    def worst(self) -> Figure:
        return self.figures[0]

    @property
    def trains_on_groups(self) -> bool:
        """Labels that only the selection rule sees are the same for every method."""
        return "train" in self.group_labels or "fitted" in self.group_labels


@dataclass(frozen=True, kw_only=True)
class Board:
    split: str
    worst: str
    """What the first column holds: of suspected or of true groups, or of classes."""
    headings: tuple[str, ...]
    lines: tuple[Line, ...]

    @property
    def several_seeds(self) -> bool:
        return any(line.seeds > 1 for line in self.lines)


def compare_page(whole: Mapping[str, Any]) -> dict[str, Any]:
    """`whole` is the content of compare.json."""
    boards = [
        board(whole, split)
        for split in sorted(whole["summary"], key=headline_rank)
        if whole["summary"][split]
    ]
    about = {k: v for k, v in whole.items() if k not in FIGURES}
    name = visible(whole["data"])
    return {
        "title": f"{name}: D2CP comparison",
        "name": name,
        "boards": boards,
        "headline": _headline(boards[0]) if boards else "Nothing has been compared yet.",
        "has_paper": any(any(_known(line.published)) for b in boards for line in b.lines),
        "published": [column.heading for column in PUBLISHED],
        "costs": [phrase(cost.heading) for cost in COSTS],
        "has_difference": any(line.difference is not None for b in boards for line in b.lines),
        "axis": plots.axis(),
        "facts": flatten(about),
        "skipped": [(visible(k), visible(v)) for k, v in whole.get("skipped", {}).items()],
        "notes": sorted(
            {
                (visible(r["method"]), visible(n))
                for r in whole["results"]
                for n in r.get("notes", [])
            }
        ),
        "payload": embedded_json({"schema": 1}),
    }


def board(whole: Mapping[str, Any], split: str) -> Board:
    """The lines of one split, best worst group first."""
    paired = whole.get("paired", {}).get(split, {})
    paper = whole.get("paper") or {}
    lines = []
    for entry in whole["summary"][split]:
        method = entry["method"]
        seeds = {r["seed"] for r in whole["results"] if r["method"] == method}
        lines.append(_line(entry, len(seeds), paired.get(method), paper.get(method) or {}))
    headings = [column.titled(groupings(whole["summary"][split])) for column in COLUMNS]
    return Board(
        split=split,
        worst=headings[0],
        headings=tuple(phrase(heading) for heading in headings),
        lines=tuple(sorted(lines, key=lambda line: -line.worst.value)),
    )


def _line(
    entry: Mapping[str, Any], seeds: int, paired: Mapping[str, Any] | None, paper: Mapping[str, Any]
) -> Line:
    figures = {column.key: _over_seeds(entry, column.key) for column in COLUMNS}
    published = tuple(_share(paper.get(column.key)) for column in PUBLISHED)
    method = str(entry["method"])
    name = visible(method)
    return Line(
        method=method,
        name=name,
        seeds=seeds,
        figures=tuple(figures.values()),
        group_labels=_labels(entry),
        costs=tuple((entry[cost.key], cost.text(entry[cost.key])) for cost in COSTS),
        difference=_difference(paired),
        published=published,
        drawing=plots.comparison_track(
            f"{name}, {WORST.titled([entry['grouping']])}",
            figures[WORST.key],
            figures[MEAN.key],
            published[0],
            method == OURS,
        ),
    )


def _labels(entry: Mapping[str, Any]) -> str:
    """Where true groups were used; mined ones are named so, and are no group labels."""
    mined = ["mined"] if entry.get("mined_groups") else []
    return ", ".join([*(visible(label) for label in entry["group_labels"]), *mined]) or "none"


def _over_seeds(entry: Mapping[str, Any], key: str) -> Figure:
    """Bounds: one standard deviation over seeds to either side; of a single seed, the interval
    over test images."""
    value, spread = float(entry[key]), entry.get(f"{key}_std")
    if spread is not None:
        return Figure(value=value, bounds=(value - spread, value + spread))
    low, high = entry["intervals"][key]
    return Figure(value=value, bounds=(low, high))


def _difference(paired: Mapping[str, Any] | None) -> Figure | None:
    if paired is None:
        return None
    bounds = paired.get("interval")
    return Figure(
        value=paired[WORST.key], bounds=None if bounds is None else (bounds[0], bounds[1])
    )


def _known(published: tuple[float | None, ...]) -> list[bool]:
    return [figure is not None for figure in published]


def _share(published: float | None) -> float | None:
    """The paper prints percentages."""
    return None if published is None else published / 100


def _headline(first: Board) -> str:
    fair = [line for line in first.lines if not line.trains_on_groups]
    ours = next((line for line in fair if line.method == OURS), None)
    if ours is None:
        best = first.lines[0]
        return f"{best.name} has the best {first.worst}: {100 * best.worst.value:.1f}% right."
    rank = fair.index(ours) + 1
    place = "first" if rank == 1 else f"number {rank}"
    among = count(len(fair), "method")
    return (
        f"D2CP answers {100 * ours.worst.value:.1f}% of its {first.worst} right: "
        f"{place} of the {among} trained without group labels."
    )
