"""Before and after: results.json as pairs of figures with intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from d2cp.evaluate.columns import COLUMNS, Column
from d2cp.evaluate.intervals import share_interval
from d2cp.report.words import phrase

Bounds = tuple[float, float]
PLOT_GROUPS = 12
HEADLINE_ORDER = ("test_balanced", "test", "val")


@dataclass(frozen=True, kw_only=True)
class Figure:
    """An accuracy with its interval."""

    value: float
    bounds: Bounds | None = None


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One line of the plot: a group, or a summary, before and after."""

    name: str
    n: int | None
    before: Figure | None
    after: Figure | None


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """All that one split says about the two models."""

    split: str
    selection: str
    grouping: str
    figures: tuple[Pair, ...]
    """One a column of results, in their order: the worst group first."""
    groups: tuple[Pair, ...]

    @property
    def worst(self) -> Pair:
        return self.figures[0]

    @property
    def plotted(self) -> tuple[Pair, ...]:
        """All groups while they are few, else those with the lowest accuracy, lowest first."""
        if len(self.groups) <= PLOT_GROUPS:
            return self.groups
        return tuple(sorted(self.groups, key=_lowest)[:PLOT_GROUPS])


def _lowest(pair: Pair) -> tuple[float, float]:
    values = [f.value if f is not None else 1.0 for f in (pair.after, pair.before)]
    return values[0], values[1]


def outcomes(
    results: Sequence[Mapping[str, Any]], selection: str, group_name: Callable[[str, str], str]
) -> list[Outcome]:
    """One a split, the most telling first; `group_name(key, grouping)` names a group."""
    splits = sorted({r["split"] for r in results}, key=headline_rank)
    made = []
    for split in splits:
        before = _pick(results, "erm", split, selection)
        after = _pick(results, "d2cp", split, selection)
        one = after or before
        if one is None:
            continue
        grouping = str(one.get("grouping", "true"))
        keys = sorted(one["groups"], key=lambda key: [int(part) for part in key.split(",")])
        pairs = tuple(
            Pair(
                name=group_name(key, grouping),
                n=int(one["groups"][key]["n"]),
                before=_group(before, key),
                after=_group(after, key),
            )
            for key in keys
            if one["groups"][key]["n"]
        )
        made.append(
            Outcome(
                split=split,
                selection=str(one["selection"]),
                grouping=grouping,
                figures=tuple(_summary(column, grouping, before, after) for column in COLUMNS),
                groups=pairs,
            )
        )
    return made


def headline_rank(split: str) -> tuple[int, str]:
    known = HEADLINE_ORDER.index(split) if split in HEADLINE_ORDER else len(HEADLINE_ORDER)
    return known, split


def _pick(
    results: Sequence[Mapping[str, Any]], method: str, split: str, selection: str
) -> Mapping[str, Any] | None:
    found = [r for r in results if r["method"] == method and r["split"] == split]
    return next((r for r in found if r["selection"] == selection), found[0] if found else None)


def _summary(
    column: Column,
    grouping: str,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
) -> Pair:
    return Pair(
        name=phrase(column.titled([grouping])),
        n=None,
        before=_total(before, column.key),
        after=_total(after, column.key),
    )


def _total(result: Mapping[str, Any] | None, key: str) -> Figure | None:
    if result is None or result.get(key) is None:
        return None
    return Figure(value=result[key], bounds=_bounds(result.get("intervals", {}).get(key)))


def _group(result: Mapping[str, Any] | None, key: str) -> Figure | None:
    if result is None or not result["groups"].get(key, {}).get("n"):
        return None
    group = result["groups"][key]
    return Figure(value=group["accuracy"], bounds=share_interval(group["accuracy"], group["n"]))


def _bounds(given: Any) -> Bounds | None:
    return None if given is None else (float(given[0]), float(given[1]))
