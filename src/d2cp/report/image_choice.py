"""Which images a report shows: few enough for one file, the telling ones first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from d2cp.core.arrays import Ints
from d2cp.report.rows import Rows

KINDS = ("broken", "mended", "wrong", "near", "plain")
"""Right before and wrong after; wrong before and right after; wrong both times; score close to the
threshold; anything else."""
NEAR_SHARE = 0.02


@dataclass(frozen=True, kw_only=True)
class Sample:
    rows: Ints
    total: int


def kinds(rows: Rows, thresholds: Sequence[float]) -> NDArray[np.int8]:
    """One of KINDS for every image."""
    kind = np.full(len(rows), KINDS.index("plain"), dtype=np.int8)
    kind[near_threshold(rows, thresholds)] = KINDS.index("near")
    answered = rows.answered
    right, was_right = rows.after == rows.y, rows.before == rows.y
    kind[answered & ~right & ~was_right] = KINDS.index("wrong")
    kind[answered & right & ~was_right] = KINDS.index("mended")
    kind[answered & ~right & was_right] = KINDS.index("broken")
    return kind


def threshold_distance(rows: Rows, thresholds: Sequence[float]) -> NDArray[np.float64]:
    """How far each score is from the nearest threshold; not a number where there is none."""
    if not thresholds:
        return np.full(len(rows), np.nan)
    return np.asarray(np.min([np.abs(rows.score - t) for t in thresholds], axis=0))


def near_threshold(rows: Rows, thresholds: Sequence[float]) -> NDArray[np.bool_]:
    """The few images whose score lies closest to a threshold: their value is least certain."""
    distance = threshold_distance(rows, thresholds)
    known = ~np.isnan(distance)
    if not known.any():
        return known
    return np.asarray(known & (distance <= np.quantile(distance[known], NEAR_SHARE)))


def choose(rows: Rows, kind: NDArray[np.int8], limit: int, first: Sequence[int] = ()) -> Sample:
    """At most `limit` rows, dealt in turn over class × pseudo value × kind, so that every cell is
    seen; within one, spread evenly over the table. The order is the order of the dealing, after
    the rows named `first`."""
    stride = max(1, int(rows.pseudo.max(initial=0)) + 2)
    cell = (rows.y * stride + rows.pseudo + 1) * len(KINDS) + kind
    by_cell = np.argsort(cell, kind="stable")
    _, starts, sizes = np.unique(cell[by_cell], return_index=True, return_counts=True)
    hands = []
    for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
        take = min(size, limit)
        places = np.linspace(0, size - 1, take).round().astype(np.int64)
        hands.append(by_cell[start : start + size][np.unique(places)])
    hands.sort(key=lambda hand: int(kind[hand[0]]))  # in each turn the telling kinds go first
    dealt: list[int] = []
    for turn in range(max((len(hand) for hand in hands), default=0)):
        dealt += [int(hand[turn]) for hand in hands if turn < len(hand)]
        if len(dealt) >= limit:
            break
    order = list(dict.fromkeys([*first, *dealt]))[:limit]
    return Sample(rows=np.array(order, dtype=np.int64), total=len(rows))
