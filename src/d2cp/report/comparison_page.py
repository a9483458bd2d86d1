"""The comparison report: methods over seeds, beside the paper's figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from d2cp.report import plots
from d2cp.report.html import embedded_json
from d2cp.report.outcomes import Figure, headline_rank
from d2cp.report.words import count, flatten, visible

OURS = "d2cp"
FIGURES = ("schema", "results", "summary", "paired", "paper")


@dataclass(frozen=True, kw_only=True)
class Line:
    """One method on one split, over its seeds."""

    method: str
    name: str
    seeds: int
    worst: Figure
    mean: Figure
    weighted: Figure
    group_labels: str
    trainable: int | None
    passes: float | None
    seconds: float | None
    difference: Figure | None
    paper_worst: float | None
    paper_mean: float | None
    drawing: Markup

    @property
    def trains_on_groups(self) -> bool:
        """Labels that only the selection rule sees are the same for every method."""
        return "train" in self.group_labels


@dataclass(frozen=True, kw_only=True)
class Board:
    split: str
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
        "has_paper": any(line.paper_worst is not None for b in boards for line in b.lines),
        "has_difference": any(line.difference is not None for b in boards for line in b.lines),
        "axis": plots.axis(),
        "facts": flatten(about),
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
    return Board(split=split, lines=tuple(sorted(lines, key=lambda line: -line.worst.value)))


def _line(
    entry: Mapping[str, Any], seeds: int, paired: Mapping[str, Any] | None, paper: Mapping[str, Any]
) -> Line:
    worst, mean = _over_seeds(entry, "worst_group"), _over_seeds(entry, "mean")
    published = _share(paper.get("worst_group"))
    method = str(entry["method"])
    name = visible(method)
    return Line(
        method=method,
        name=name,
        seeds=seeds,
        worst=worst,
        mean=mean,
        weighted=_over_seeds(entry, "train_weighted_mean"),
        group_labels=", ".join(visible(label) for label in entry["group_labels"]) or "none",
        trainable=entry.get("trainable"),
        passes=entry.get("passes"),
        seconds=entry.get("seconds"),
        difference=_difference(paired),
        paper_worst=published,
        paper_mean=_share(paper.get("mean")),
        drawing=plots.comparison_track(name, worst, mean, published, method == OURS),
    )


def _over_seeds(entry: Mapping[str, Any], key: str) -> Figure:
    """Bounds: one standard deviation over seeds to either side; of a single seed, the interval
    over test images, which is known for the worst group alone."""
    value, spread = float(entry[key]), entry.get(f"{key}_std")
    if spread is not None:
        return Figure(value=value, bounds=(value - spread, value + spread))
    given = entry.get("interval") if key == "worst_group" else None
    return Figure(value=value, bounds=None if given is None else (given[0], given[1]))


def _difference(paired: Mapping[str, Any] | None) -> Figure | None:
    if paired is None:
        return None
    bounds = paired.get("interval")
    return Figure(
        value=paired["worst_group"], bounds=None if bounds is None else (bounds[0], bounds[1])
    )


def _share(published: float | None) -> float | None:
    """The paper prints percentages."""
    return None if published is None else published / 100


def _headline(first: Board) -> str:
    fair = [line for line in first.lines if not line.trains_on_groups]
    ours = next((line for line in fair if line.method == OURS), None)
    if ours is None:
        best = first.lines[0]
        return f"{best.name} has the best worst group: {100 * best.worst.value:.1f}% right."
    rank = fair.index(ours) + 1
    place = "first" if rank == 1 else f"number {rank}"
    among = count(len(fair), "method")
    return (
        f"D2CP answers {100 * ours.worst.value:.1f}% of its worst group right: "
        f"{place} of the {among} trained without group labels."
    )
