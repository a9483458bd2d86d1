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


def follows(leader: Floats, follower: Floats, y: Ints) -> tuple[float, float]:
    """(how far, standard error): 0 where the second score has only the class in common with the
    first, 1 where it reads the same thing.

    Where an image goes clearly against the leader, a second reading of the same thing goes against
    its class too, an independent cue still sides with it, and what reads the same thing and more
    lies between. (A correlation within the classes would fade as the cue's values do: on 99% of a
    class nothing is left to correlate.) It is not symmetric: a blunt reading follows a sharp one
    further than it leads, a reading of the cue alone follows one of cue and object.
    """
    lead, own = margins(leader, y), margins(follower, y)
    drop = usual = variance = 0.0
    for c in np.unique(y):
        mine = y == c
        against = np.flatnonzero(mine & (lead < 0))
        if len(against) < LEAST:
            continue
        # Clearly: as far on the other side as is usual there. A noisy reading of a cue that nearly
        # all images share has more slips than real exceptions, but not that far.
        order = against[np.argsort(lead[against], kind="stable")]
        far = int((lead[order] <= -lead[mine].mean()).sum())
        clearly = own[order[: max(LEAST, far)]]
        mean = float(own[mine].mean())
        usual += mean
        drop += mean - float(clearly.mean())
        variance += float(clearly.var(ddof=1)) / len(clearly)
    if usual <= 0:
        return 0.0, 0.0
    return drop / (2 * usual), variance**0.5 / (2 * usual)
