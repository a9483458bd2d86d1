"""Before and after: results.json as pairs of figures with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
    worst: Pair
    mean: Pair
    groups: tuple[Pair, ...]

    @property
    def plotted(self) -> tuple[Pair, ...]:
        """All groups while they are few, else those with the lowest accuracy, lowest first."""
        if len(self.groups) <= PLOT_GROUPS:
            return self.groups
        return tuple(sorted(self.groups, key=_lowest)[:PLOT_GROUPS])


def _lowest(pair: Pair) -> tuple[float, float]:
    values = [f.value if f is not None else 1.0 for f in (pair.after, pair.before)]
    return values[0], values[1]


def wilson(accuracy: float, n: int, z: float = 1.96) -> Bounds:
    """The 95% score interval of a share: honest for small groups and near 0 and 1."""
    if n <= 0:
        return (0.0, 1.0)
    centre = (accuracy + z * z / (2 * n)) / (1 + z * z / n)
    spread = z / (1 + z * z / n) * math.sqrt(accuracy * (1 - accuracy) / n + (z / (2 * n)) ** 2)
    return (max(0.0, centre - spread), min(1.0, centre + spread))


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
                worst=_summary("Worst group", "worst_group", before, after),
                mean=_summary("All images", "mean", before, after),
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
    name: str, key: str, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
) -> Pair:
    return Pair(name=name, n=None, before=_total(before, key), after=_total(after, key))


def _total(result: Mapping[str, Any] | None, key: str) -> Figure | None:
    if result is None or result.get(key) is None:
        return None
    return Figure(value=result[key], bounds=_bounds(result.get("intervals", {}).get(key)))


def _group(result: Mapping[str, Any] | None, key: str) -> Figure | None:
    if result is None or not result["groups"].get(key, {}).get("n"):
        return None
    group = result["groups"][key]
    given = group.get("interval") or result.get("intervals", {}).get("groups", {}).get(key)
    return Figure(
        value=group["accuracy"], bounds=_bounds(given) or wilson(group["accuracy"], group["n"])
    )


def _bounds(given: Any) -> Bounds | None:
    return None if given is None else (float(given[0]), float(given[1]))
