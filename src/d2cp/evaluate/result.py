"""One result: a method, a seed, a split, the selection rule, and its figures by group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from d2cp.core.arrays import Ints
from d2cp.errors import RunError
from d2cp.evaluate.columns import figures
from d2cp.evaluate.metrics import GroupAccuracy, group_accuracy

Grouping = Literal["true", "pseudo", "class"]


@dataclass(frozen=True, kw_only=True)
class Result:
    method: str
    seed: int
    split: str
    selection: str
    grouping: Grouping
    by_group: GroupAccuracy
    values: int
    class_names: Sequence[str]
    attribute_names: Sequence[str] | None
    value_names: Sequence[str] = ()

    def to_dict(self) -> dict[str, Any]:
        """The keys of `d2cp show --json`; a group's key is "y,a"."""
        found = self.by_group
        groups = {}
        for g, n, right in zip(found.groups, found.n, found.accuracy, strict=True):
            key = f"{g // self.values},{g % self.values}"
            own = (self.class_names, self.attribute_names, self.value_names)
            name = group_name(key, self.grouping, *own)
            groups[key] = {"name": name, "n": int(n), "accuracy": float(right)}
        return {
            "method": self.method,
            "seed": self.seed,
            "split": self.split,
            "selection": self.selection,
            "grouping": self.grouping,
            **figures(found),
            "groups": groups,
        }


def group_name(
    key: str,
    grouping: str,
    class_names: Sequence[str],
    attribute_names: Sequence[str] | None,
    value_names: Sequence[str] = (),
) -> str:
    """ "1,0" in words: class and attribute, class and suspected value (`value_names`, where it has
    some), or the class alone."""
    y, _, a = key.partition(",")
    named = _name(class_names, y, "class")
    if grouping == "class" or not a:
        return named
    if grouping == "pseudo" or attribute_names is None:
        value = _name(value_names, a, "value") if value_names else f"value {a}"
        return f"{named}, {value}"
    return f"{named}, {_name(attribute_names, a, 'attribute')}"


def _name(names: Sequence[str], number: str, what: str) -> str:
    """Keys and names may come from two files that do not belong together."""
    if int(number) >= len(names):
        raise RunError(
            f"a group of {what} {number}, and there are names for {len(names)}",
            expected="figures and names of one run",
            remedy="delete the folders `data` and `evaluate` of the run and run again",
        )
    return names[int(number)]


def score(
    predicted: Ints,
    y: Ints,
    a: Ints | None,
    values: int,
    train_groups: Ints,
    *,
    method: str,
    seed: int,
    split: str,
    selection: str,
    grouping: Grouping,
    class_names: Sequence[str],
    attribute_names: Sequence[str] | None,
    value_names: Sequence[str] = (),
) -> Result:
    """Score predictions of one split. Groups are A·y + a; without an attribute, the classes."""
    if a is None:
        values, grouping = 1, "class"
    groups = values * y + (0 if a is None else a)
    return Result(
        method=method,
        seed=seed,
        split=split,
        selection=selection,
        grouping=grouping,
        by_group=group_accuracy(predicted == y, groups, train_groups),
        values=values,
        class_names=class_names,
        attribute_names=attribute_names,
        value_names=value_names,
    )
