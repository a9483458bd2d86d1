"""Which draw and which state of a search answers best, and how good such a choice is.

The best of many candidates looks better than it is, on the images that chose it. So images are
halved again and again: one half chooses, the other says how often the chosen candidate is right.
"""

from __future__ import annotations

import numpy as np

from d2cp.core.arrays import Bools, Floats, Ints
from d2cp.core.rng import numpy_generator
from d2cp.debias.sides import side_weights

HALVINGS = 25


def scores(right: Bools, y: Ints, against: Floats) -> Floats:
    """[draws, states] of right [draws, states, n]: accuracy on the worst side of a class, and a
    thousandth of the mean over sides for ties; averages of a state and its neighbours, since a
    state that is good alone is good by chance. `against` the finding, all 0 where there is none."""
    shares = right.astype(np.float64) @ side_weights(y, against).T
    plain: Floats = shares.min(axis=-1) + 1e-3 * shares.mean(axis=-1)
    states = plain.shape[1]
    near = [plain[:, max(0, j - 1) : j + 2].mean(axis=1) for j in range(states)]
    return np.stack(near, axis=1)


def best(right: Bools, y: Ints, against: Floats) -> tuple[int, int]:
    """Draw and state; the first draw and the last state of equals."""
    found = scores(right, y, against)
    draw = int(found.max(axis=1).argmax())
    state = int(np.flatnonzero(found[draw] == found[draw].max())[-1])
    return draw, state


def halves(groups: Ints, *, seed: int = 0) -> list[Bools]:
    """Halvings of the images, every group halved; each comes with its complement."""
    made = []
    for repeat in range(HALVINGS):
        order = numpy_generator(seed, "debias/halves", repeat).permutation(len(groups))
        order = order[np.argsort(groups[order], kind="stable")]
        half = np.zeros(len(groups), dtype=bool)
        half[order[repeat % 2 :: 2]] = True
        made += [half, ~half]
    return made


def chosen_by_others(right: Bools, y: Ints, against: Floats, choosing: list[Bools]) -> Floats:
    """[n]: how often an image is answered right by what halves without it choose."""
    if right.shape[-1] < 2:  # nobody else is there to choose
        alone: Floats = right[best(right, y, against)].astype(np.float64)
        return alone
    found, times = np.zeros(right.shape[-1]), np.zeros(right.shape[-1])
    for half in choosing:
        draw, state = best(right[..., half], y[half], against[half])
        found[~half] += right[draw, state, ~half]
        times[~half] += 1
    share: Floats = found / times
    return share
