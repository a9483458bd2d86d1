"""One result: a method, a seed, a split, the selection rule, and its figures by group."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from d2cp.evaluate.metrics import GroupAccuracy, Interval, Ints, bootstrap, group_accuracy

Grouping = Literal["true", "pseudo", "class"]


@dataclass(frozen=True, kw_only=True)
class Result:
    method: str
    seed: int
    split: str
    selection: str
    grouping: Grouping
    by_group: GroupAccuracy
    attributes: int
    train_weighted_mean: float
    intervals: dict[str, Interval]

    def to_dict(self) -> dict[str, Any]:
        """The keys of `d2cp show --json`; a group is named "y,a"."""
        found = self.by_group
        return {
            "method": self.method,
            "seed": self.seed,
            "split": self.split,
            "selection": self.selection,
            "grouping": self.grouping,
            "worst_group": found.worst,
            "mean": found.mean,
            "train_weighted_mean": self.train_weighted_mean,
            "groups": {
                f"{g // self.attributes},{g % self.attributes}": {"n": int(n), "accuracy": float(r)}
                for g, n, r in zip(found.groups, found.n, found.accuracy, strict=True)
            },
            "intervals": {name: [i.low, i.high] for name, i in self.intervals.items()},
        }


def score(
    predicted: Ints,
    y: Ints,
    a: Ints | None,
    attributes: int,
    train_groups: Ints,
    *,
    method: str,
    seed: int,
    split: str,
    selection: str,
    grouping: Grouping,
    resamples: int = 1000,
    confidence: float = 0.95,
) -> Result:
    """Score predictions of one split. Groups are A·y + a; without an attribute, the classes."""
    if a is None:
        attributes, grouping = 1, "class"
    groups = attributes * y + (0 if a is None else a)
    right = predicted == y
    counts = dict(Counter(np.asarray(train_groups).tolist()))
    found = group_accuracy(right, groups)
    return Result(
        method=method,
        seed=seed,
        split=split,
        selection=selection,
        grouping=grouping,
        by_group=found,
        attributes=attributes,
        train_weighted_mean=found.weighted(counts),
        intervals=bootstrap(
            right, groups, counts, resamples=resamples, confidence=confidence, seed=seed
        ),
    )
