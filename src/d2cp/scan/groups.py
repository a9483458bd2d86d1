"""Which lenses read the same thing, and which of them reads nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from d2cp.scan.batched import Ints
from d2cp.scan.candidate import Candidate
from d2cp.scan.evidence import certainty, of_the_class, sure_and_wrong, unlike_the_class
from d2cp.scan.likeness import follows
from d2cp.scan.values import agreement, cut, values_of

APART, SAME = 0.45, 0.9
"""How far one score follows another: below the first they are two things, from the second on one.
Between them the follower reads something else as well."""
ENOUGH = 0.5
"""Share of a lens's agreement with the class that a purer one has to reach to take its place: what
hardly tells the class is contradicted at any certainty."""


def gathered(ranked: Sequence[Candidate], y: Ints) -> list[list[Candidate]]:
    """Groups of readings of one thing, the purest first in each.

    A lens that reads a group's cue and more is in no group: what else it reads shows once the
    findings are accounted for.
    """
    groups, left = [], list(ranked)
    while left:
        lead = purest(left[0], left[1:], y)
        group, rest = [lead], []
        for other in left:
            if other is lead:
                continue
            (there, error), (back, _) = both_ways(lead, other, y)
            if there + 2 * error >= SAME and min(there, back) >= APART:
                group.append(other)
            elif there < APART:
                rest.append(other)
        groups.append(group)
        left = rest
    return groups


PLAINEST = (
    "colour",
    "saturation",
    "tint",
    "sharpness",
    "border",
    "texture",
    "layout",
    "repeated detail",
    "coloured detail",
    "local pattern",
)
"""Lenses that look at pixels, from the one that can see least. Patches have colours too, so that a
colour is a pattern to them, but a pattern is no colour to a histogram."""
AS_WELL = 0.005
"""Balanced accuracy that a plainer lens may lack beyond two standard errors."""


def reading_well(parts: Sequence[Candidate], whole: Candidate, y: Ints) -> tuple[str, ...]:
    """The lenses that read a finding's values as well as any, the one that can see least first.
    `parts` are its readings by one lens each."""
    value = values_of(whole.held_out, cut(whole.held_out, y))
    reads = {part.lens: _reading(part, value) for part in parts}
    best = max(reads.values())
    rarest = int(np.unique(value, return_counts=True)[1].min())
    error = float(np.sqrt(best * (1 - best) / rarest))
    good = [lens for lens, read in reads.items() if read >= best - AS_WELL - 2 * error]
    return tuple(sorted(good, key=lambda name: PLAINEST.index(name) if name in PLAINEST else -1))


def _reading(part: Candidate, value: Ints) -> float:
    """Balanced accuracy of one lens for the finding's values."""
    return agreement(values_of(part.held_out, cut(part.held_out, value)), value)


Way = tuple[float, float]


def both_ways(one: Candidate, two: Candidate, y: Ints) -> tuple[Way, Way]:
    """How far the second follows the first, and the first the second, with standard errors."""
    return follows(one.held_out, two.held_out, y), follows(two.held_out, one.held_out, y)


def purest(best: Candidate, others: Sequence[Candidate], y: Ints) -> Candidate:
    """`best`, or the first of the others that reads its cue without the rest of it.

    The other follows it, and not the other way round, tells enough of the class, and its sure
    answers are contradicted clearly more often: errors about the object itself crowd where a lens
    is unsure.
    """
    told, ratio, error = _purity(best, y)
    for other in others:
        (there, there_error), (back, back_error) = both_ways(best, other, y)
        if there + 2 * there_error < SAME or back + 2 * back_error >= SAME:
            continue
        its, its_ratio, its_error = _purity(other, y)
        if its >= ENOUGH * told and its_ratio > ratio + 2 * float(np.hypot(error, its_error)):
            return other
    return best


def _purity(candidate: Candidate, y: Ints) -> tuple[float, float, float]:
    """Agreement with the class beyond chance; how far sure answers are contradicted more often than
    those of an equally good reading of the class itself, and its standard error."""
    threshold = cut(candidate.held_out, y)
    value = values_of(candidate.held_out, threshold)
    ratio, error = sure_and_wrong(value, certainty(candidate.held_out, threshold), y)
    classes = 2 if threshold is not None else candidate.held_out.shape[1]
    agreeing = agreement(value, y)
    unlike = unlike_the_class(ratio, 1 - agreeing)
    return agreeing - 1 / classes, unlike, error / (1 - of_the_class(1 - agreeing))
