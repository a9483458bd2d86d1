"""The columns of a result: the one list that scoring, `show`, `evaluate`, `compare` and the report
read. A new figure or cost is an entry here and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from d2cp.evaluate.intervals import Interval, mean_interval, worst_interval
from d2cp.evaluate.metrics import GroupAccuracy


@dataclass(frozen=True)
class Column:
    """A figure of a result, a share of images that is right."""

    key: str
    heading: str
    value: Callable[[GroupAccuracy], float]
    interval: Callable[[GroupAccuracy], Interval]
    by_grouping: Mapping[str, str] = field(default_factory=dict)
    """Headings where it matters which groups were scored: `true`, `pseudo` (suspected), `class`."""

    def titled(self, groupings: Iterable[str]) -> str:
        """The heading over results that were scored by these kinds of groups."""
        kinds = set(groupings)
        return self.by_grouping.get(kinds.pop(), self.heading) if len(kinds) == 1 else self.heading


@dataclass(frozen=True)
class Cost:
    """What a method took, averaged over its seeds."""

    key: str
    heading: str
    text: Callable[[float], str]


WORST = Column(
    "worst_group",
    "worst group",
    lambda found: found.worst,
    lambda found: worst_interval(found.accuracy, found.n),
    {
        "true": "worst group (true groups)",
        "pseudo": "worst group (suspected groups)",
        "class": "worst class",
    },
)
MEAN = Column(
    "mean",
    "mean",
    lambda found: found.mean(found.n.astype(float)),
    lambda found: mean_interval(found.accuracy, found.n, found.n.astype(float)),
)
TRAIN_WEIGHTED = Column(
    "train_weighted_mean",
    "train-weighted mean",
    lambda found: found.mean(found.train_weight),
    lambda found: mean_interval(found.accuracy, found.n, found.train_weight),
)
COLUMNS = (WORST, MEAN, TRAIN_WEIGHTED)

COSTS = (
    Cost("trainable", "trained", lambda n: f"{n:,.0f}"),
    Cost("passes", "passes", lambda n: f"{n:,.0f}"),
    Cost("seconds", "time", lambda s: f"{s:,.0f} s"),
)


def figures(found: GroupAccuracy) -> dict[str, Any]:
    """Every column's value under its key, and their intervals."""
    return {
        **{column.key: column.value(found) for column in COLUMNS},
        "intervals": {column.key: list(column.interval(found)) for column in COLUMNS},
    }


def groupings(results: Iterable[Mapping[str, Any]]) -> set[str]:
    return {str(result["grouping"]) for result in results}
