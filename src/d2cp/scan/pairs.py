"""Matched real pairs: two pictures of one class, alike but for the finding."""

from __future__ import annotations

import numpy as np

from d2cp.scan.batched import Doubles, Floats, Ints

SURE = 2 / 3
"""Share of a value's pictures that are less sure than those of a pair."""


def without_direction(features: Floats, value: Ints, y: Ints) -> Floats:
    """Features with the directions taken out in which the values differ within the classes."""
    centred = features - features.mean(0)
    for label in np.unique(y):
        centred[y == label] -= centred[y == label].mean(0)
    found = [centred[value == v].mean(0) for v in np.unique(value)]
    basis, sizes, _ = np.linalg.svd(np.stack(found).T, full_matrices=False)
    kept = basis[:, sizes > 1e-6 * max(float(sizes.max(initial=0)), 1e-12)]
    projected: Floats = features - (features @ kept) @ kept.T
    return projected


def matched_pairs(
    features: Floats, value: Ints, y: Ints, sure: Doubles, each: int
) -> list[tuple[int, int]]:
    """(against, with): at most `each` pairs of every class, the most alike first.

    The first picture's value speaks against its class, the second's for it; both are among the
    surest third of all pictures of their value, so that the two differ visibly: what is merely
    misread is rarely that sure. No picture is in two pairs.
    """
    plain = without_direction(features, value, y)
    bound = {int(v): float(np.quantile(sure[value == v], SURE)) for v in np.unique(value)}
    least = np.array([bound[int(v)] for v in value])
    found = []
    for label in np.unique(y):
        against = _surer(np.flatnonzero((y == label) & (value != label)), sure, least)
        usual = _surer(np.flatnonzero((y == label) & (value == label)), sure, least)
        if not len(against) or not len(usual):
            continue
        a, b = plain[against], plain[usual]
        apart = (a * a).sum(1)[:, None] + (b * b).sum(1) - 2 * a @ b.T
        for _ in range(min(each, len(against), len(usual))):
            i, j = np.unravel_index(int(apart.argmin()), apart.shape)
            found.append((int(against[i]), int(usual[j])))
            apart[i], apart[:, j] = np.inf, np.inf
    return found


def _surer(rows: Ints, sure: Doubles, least: Doubles) -> Ints:
    """Those that are sure enough; the surest one where none is."""
    enough = rows[sure[rows] >= least[rows]]
    return enough if len(enough) else rows[np.argsort(-sure[rows], kind="stable")[:1]]
