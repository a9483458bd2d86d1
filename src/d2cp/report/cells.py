"""Class × pseudo value: how the cells are filled, which value goes with which class, mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from d2cp.core.arrays import UNKNOWN, Ints
from d2cp.report.rows import Rows

MATRIX_CLASSES = 4  # beyond it a list of the commonest mistakes is easier to read than matrices


def contingency(y: Ints, pseudo: Ints, classes: int, values: int) -> Ints:
    """Counts [classes, values]; rows without a pseudo value are left out."""
    known = pseudo != UNKNOWN
    cells = np.bincount(y[known] * values + pseudo[known], minlength=classes * values)
    result: Ints = cells.reshape(classes, values).astype(np.int64)
    return result


def typical_values(counts: Ints) -> Ints:
    """For each class the value it carries more often than the data as a whole does."""
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    overall = counts.sum(axis=0) / max(1, counts.sum())
    result: Ints = np.argmax(share / np.maximum(overall, 1e-12), axis=1).astype(np.int64)
    return result


@dataclass(frozen=True, kw_only=True)
class ValueName:
    """A pseudo value and what can be said of it: numbers carry no meaning by themselves."""

    value: int
    hint: str
    own: str = ""
    """What a finding calls it."""

    @property
    def plain(self) -> str:
        return self.own or f"value {self.value}"

    @property
    def text(self) -> str:
        return self.plain + (f" ({self.hint})" if self.hint else "")


def value_names(
    rows: Rows,
    counts: Ints,
    class_names: Sequence[str],
    attribute_names: Sequence[str] | None,
    own: Sequence[str] = (),
) -> list[ValueName]:
    """Named after the true attribute most of its images have, where one is known; else after the
    class in which the value is usual. `own` are names that the values have already."""
    names = []
    typical = typical_values(counts)
    for value in range(counts.shape[1]):
        hint = ""
        members = rows.pseudo == value
        if rows.a is not None and attribute_names is not None and members.any():
            shares = np.bincount(rows.a[members], minlength=len(attribute_names)) / members.sum()
            top = int(shares.argmax())
            hint = f"mostly {attribute_names[top]}" if shares[top] > 0.5 else "mixed"
        else:
            homes = [class_names[c] for c in np.flatnonzero(typical == value).tolist()]
            if 0 < len(homes) <= 2:
                hint = "usual in " + " and ".join(homes)
        called = own[value] if value < len(own) else ""
        names.append(ValueName(value=value, hint=hint, own=called))
    return names


@dataclass(frozen=True, kw_only=True)
class Confusion:
    """Answers to images of one pseudo value: counts [true class, answer]."""

    value: int
    before: Ints
    after: Ints


def confusions(rows: Rows, split: str, classes: int, values: int) -> list[Confusion]:
    made = []
    for value in range(values):
        chosen = rows.answered & (rows.split == split) & (rows.pseudo == value)
        if chosen.any():
            y = rows.y[chosen]
            before = contingency(y, rows.before[chosen], classes, classes)
            after = contingency(y, rows.after[chosen], classes, classes)
            made.append(Confusion(value=value, before=before, after=after))
    return made


@dataclass(frozen=True, kw_only=True)
class Mistake:
    y: int
    value: int
    answer: int
    before: int
    after: int


def commonest_mistakes(found: list[Confusion], limit: int = 12) -> list[Mistake]:
    mistakes = [
        Mistake(y=y, value=c.value, answer=k, before=int(n), after=int(c.after[y, k]))
        for c in found
        for (y, k), n in np.ndenumerate(c.before)
        if y != k and (n or c.after[y, k])
    ]
    return sorted(mistakes, key=lambda m: (-max(m.before, m.after), m.y, m.value))[:limit]
