"""How far texts go with a finding's values: differences of cosines within classes, and chance."""

from __future__ import annotations

import numpy as np

from d2cp.core.arrays import one_hot
from d2cp.scan.batched import Doubles, Ints

LEAST = 2
"""Images of a class with a value below which that pair is left out."""


def balanced_rows(y: Ints, value: Ints, limit: int, generator: np.random.Generator) -> Ints:
    """At most `limit` rows: as many of each pair of class and value, as far as there are any, of
    classes that have two values or more. Too many classes: the first in a random order."""
    order = generator.permutation(len(y))
    pair = y * (value.max(initial=0) + 1) + value
    order = order[np.argsort(pair[order], kind="stable")]
    starts = np.unique(pair[order], return_index=True)[1]
    cells: dict[int, list[Ints]] = {}
    for rows in np.split(order, starts[1:]):
        if len(rows) >= LEAST:
            cells.setdefault(int(y[rows[0]]), []).append(rows)
    usable = [found for found in cells.values() if len(found) > 1]
    sizes = np.array([len(rows) for found in usable for rows in found])
    each = LEAST
    while each < limit and np.minimum(sizes, each + 1).sum() <= limit:
        each += 1
    turns = generator.permutation(len(usable)).tolist()
    chosen = [rows[:each] for turn in turns for rows in usable[turn]]
    return np.sort(np.concatenate([order[:0], *chosen])[:limit])


def within_classes(cosines: Doubles, y: Ints) -> Doubles:
    """[n, W] in standard deviations from the mean of the image's class; 0 where nothing varies."""
    standard = np.zeros_like(cosines)
    for c in np.unique(y):
        own = cosines[y == c]
        spread = own.std(axis=0)
        standard[y == c] = (own - own.mean(axis=0)) / np.where(spread > 0, spread, np.inf)
    return standard


def word_scores(standard: Doubles, y: Ints, value: Ints, values: int) -> Doubles:
    """[values, W]: mean of the images with a value minus mean of the others of their class, then
    the mean over the classes that have both; 0 where no class has. `standard` is [n, W]."""
    total = np.zeros((values, standard.shape[1]))
    classes = np.zeros((values, 1))
    for c in np.unique(y):
        own = standard[y == c]
        sides = one_hot(value[y == c], values).T
        n = sides.sum(axis=1, keepdims=True)
        both = (n > 0) & (n < len(own))
        sums = sides @ own
        rest = (own.sum(axis=0) - sums) / np.maximum(len(own) - n, 1)
        total += both * (sums / np.maximum(n, 1) - rest)
        classes += both
    scores: Doubles = total / np.maximum(classes, 1)
    return scores


def noise(y: Ints, value: Ints, values: int) -> Doubles:
    """[values]: the standard deviation of a score under deals, but for a factor n / (n - 1) of each
    class's variance; 0 where no class has images with the value and without it."""
    variance, classes = np.zeros(values), np.zeros(values)
    for c in np.unique(y):
        n = np.bincount(value[y == c], minlength=values)
        rest = n.sum() - n
        both = (n > 0) & (rest > 0)
        variance += both * (1 / np.maximum(n, 1) + 1 / np.maximum(rest, 1))
        classes += both
    deviation: Doubles = np.sqrt(variance) / np.maximum(classes, 1)
    return deviation


def dealt_anew(y: Ints, value: Ints, generator: np.random.Generator) -> Ints:
    """The values dealt among the images of a class."""
    dealt = value.copy()
    for c in np.unique(y):
        dealt[y == c] = generator.permutation(value[y == c])
    return dealt


def chance(
    standard: Doubles, y: Ints, value: Ints, values: int, draws: int, generator: np.random.Generator
) -> Doubles:
    """[values]: the bound that no score of any word for any value passes in so many deals. It is
    in proportion to a value's noise, so that a rare value does not hide a frequent one."""
    deviation = noise(y, value, values)
    unit = np.where(deviation > 0, deviation, np.inf)[:, None]
    highest = max(
        float((word_scores(standard, y, dealt_anew(y, value, generator), values) / unit).max())
        for _ in range(draws)
    )
    return highest * deviation
