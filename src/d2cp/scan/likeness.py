"""Do two scores read the same thing? Ask the images that go against one of them."""

from __future__ import annotations

import numpy as np

from d2cp.scan.batched import Doubles, Floats, Ints

LEAST = 4
"""Images against a score, in a class, below which the class has no say."""


def margins(scores: Floats, y: Ints) -> Doubles:
    """How far a row's own class leads the best other one [N]; one column is the second class's."""
    both = np.concatenate([-scores, scores], axis=1) if scores.shape[1] == 1 else scores
    rows = np.arange(len(y))
    others = both.astype(np.float64)
    others[rows, y] = -np.inf
    lead: Doubles = both[rows, y] - others.max(axis=1)
    return lead


def likeness(one: Floats, two: Floats, y: Ints) -> float:
    """0 for scores that have only the class in common, 1 for two readings of one thing.

    Where an image goes clearly against the first score, a second reading of the same thing goes
    against its class too, an independent cue still sides with it. (A correlation within the
    classes would fade as the cue's values do: on 99% of a class nothing is left to correlate.)
    The lesser of both directions: a blunt reading follows a sharp one further than it leads.
    """
    ways = [_follows(margins(one, y), margins(two, y), y)]
    ways.append(_follows(margins(two, y), margins(one, y), y))
    return float(np.clip(min(ways), 0.0, 1.0))


def _follows(leader: Doubles, follower: Doubles, y: Ints) -> float:
    drop = usual = 0.0
    for c in np.unique(y):
        mine = y == c
        against = np.flatnonzero(mine & (leader < 0))
        if len(against) < LEAST:
            continue
        # Clearly: as far on the other side as is usual there. A noisy reading of a cue that nearly
        # all images share has more slips than real exceptions, but not that far.
        order = against[np.argsort(leader[against], kind="stable")]
        far = int((leader[order] <= -leader[mine].mean()).sum())
        clearly = order[: max(LEAST, far)]
        mean = float(follower[mine].mean())
        usual += mean
        drop += mean - float(follower[clearly].mean())
    return drop / (2 * usual) if usual > 0 else 0.0
