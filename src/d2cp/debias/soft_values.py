"""How surely an image has a value, from the score that the value was cut from.

Where nine of ten images of a class have its usual value, a score that is wrong one time in ten
calls as many images unusual by mistake as rightly. So the score is read with the class in mind: two
bells of one width over it, one a value, the same for all classes, in shares of a class's own. The
sampler then gives every image its part in either group, and more to the unusual one as values are
unsure.
"""

from __future__ import annotations

import numpy as np

from d2cp.core.arrays import Floats, Ints

ROUNDS = 100  # of expectation and maximisation over the shares
SPREAD = 1.4826  # deviation of a bell whose median deviation is 1
MOST = 2.0
FACTORS = np.linspace(1.0, MOST, 11)
LEAST = 5.0  # images that a group counts at least: an empty one gets no weight out of nothing


def value_shares(
    score: Floats, a: Ints, y: Ints, train: Ints, val: Ints, classes: int
) -> Floats | None:
    """[N, 2]: how surely each row has value 0 and value 1; other rows than `train` and `val` as if
    they were of `train`. None where values are not a cut of the score: several findings, more than
    two values, or values that a person gave."""
    if set(np.unique(a[train])) != {0, 1} or score[a == 0].max() > score[a == 1].min():
        return None
    counts = np.zeros((classes, 2), np.int64)
    np.add.at(counts, (y[train], a[train]), 1)
    usual = counts.argmax(axis=1)
    typical = np.array([_typical(score, a, y, train, usual, v) for v in (0, 1)])
    middle, deviation = typical[:, 0], typical[:, 1].mean()
    logs = -0.5 * ((score[:, None] - middle) / deviation) ** 2
    likely = np.exp(logs - logs.max(axis=1, keepdims=True))
    first = (counts + 1) / (counts + 1).sum(axis=1, keepdims=True)
    share = _class_shares(likely[train], y[train], first)
    found = _normal(share[np.maximum(y, 0)] * likely)  # a class may be unknown: no such row trains
    if len(val):
        own = _class_shares(likely[val], y[val], share)
        found[val] = _normal(own[y[val]] * likely[val])
    return found


def soft_weights(y: Ints, shares: Floats, alpha: float) -> Floats:
    """w_i = p_i (N / N_y)^alpha + f q_i (N / M_y)^alpha: p_i how surely an image has its class's
    usual value, q_i the other one, N_y and M_y their sums in the class. f, 1 to `MOST`, is the
    least with which the images that truly have the other value get, as far as is known, the weight
    that sure values would give them. A class keeps its weight; all sure: `sample_weights`."""
    weights: Floats = np.zeros(len(y))
    for label in np.unique(y):
        own = shares[y == label]
        usual = int(own.sum(axis=0).argmax())
        q = own[:, 1 - usual]
        sizes = np.maximum([(1 - q).sum(), q.sum()], LEAST)
        with_it, against = (len(y) / sizes) ** alpha
        wanted = sizes[1] * against / (sizes * [with_it, against]).sum()
        for factor in FACTORS:
            found = (1 - q) * with_it + factor * q * against
            if (found * q).sum() >= (1 - 1e-9) * wanted * found.sum():
                break
        weights[y == label] = found * (sizes * [with_it, against]).sum() / found.sum()
    return weights


def _class_shares(likely: Floats, y: Ints, first: Floats) -> Floats:
    """[classes, 2]: how frequent each value is among images of a class, from `first` on."""
    share = first.copy()
    for _ in range(ROUNDS):
        found = _normal(share[y] * likely)
        for label in np.unique(y):
            share[label] = found[y == label].mean(axis=0)
    return share


def _typical(
    score: Floats, a: Ints, y: Ints, train: Ints, usual: Ints, value: int
) -> tuple[float, float]:
    """Middle and deviation of a value's scores: of the classes that usually have it, whose few
    others do not move a median; where no class does, of the images that are called so."""
    of_classes = usual[y[train]] == value
    scores = score[train][of_classes if of_classes.any() else a[train] == value]
    middle = float(np.median(scores))
    return middle, max(SPREAD * float(np.median(np.abs(scores - middle))), 1e-6)


def _normal(p: Floats) -> Floats:
    whole: Floats = p / np.maximum(p.sum(axis=1, keepdims=True), 1e-300)
    return whole
