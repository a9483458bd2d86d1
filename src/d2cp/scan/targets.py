"""What the lenses are asked to explain: the class, less what earlier findings explain."""

from __future__ import annotations

import numpy as np

from d2cp.core.rng import numpy_generator
from d2cp.scan.batched import Doubles, Floats, Ints

BINS = 10


def one_hot(y: Ints, classes: int) -> Floats:
    """[N, 1] with two classes (the second one's), else [N, C]."""
    columns: Floats = (y[:, None] == np.arange(classes)).astype(np.float32)
    return columns[:, 1:] if classes == 2 else columns


def explained(y: Ints, classes: int, scores: list[Floats]) -> Doubles:
    """P(class | the findings so far) [N, T]: the classes' shares where there are none, else an
    additive logistic regression on each score's bins."""
    plain = one_hot(y, classes)
    if not scores:
        return np.repeat(plain.mean(0, keepdims=True), len(y), axis=0).astype(np.float64)
    from sklearn.linear_model import LogisticRegression

    basis = np.concatenate([_basis(column) for s in scores for column in s.T], axis=1)
    model = LogisticRegression(C=1.0, max_iter=200).fit(basis, y)
    found: Doubles = np.zeros((len(y), classes))
    found[:, model.classes_] = model.predict_proba(basis)
    return found[:, 1:] if classes == 2 else found


def _basis(score: Floats) -> Doubles:
    """The score itself and steps at its quantiles: any smooth curve is near a sum of these."""
    edges = np.unique(np.quantile(score, np.linspace(0, 1, BINS + 1)[1:-1]))
    steps = (score[:, None] > edges).astype(np.float64)
    spread = (score - score.mean()) / (score.std() + 1e-9)
    return np.concatenate([spread[:, None], steps], axis=1)


def permuted(y: Ints, probability: Doubles, n: int, seed: int, step: int) -> Ints:
    """Labels dealt anew [n, N] among images for which the findings so far expect the same."""
    top = probability.argmax(1) if probability.shape[1] > 1 else np.zeros(len(y), dtype=np.int64)
    level = probability.max(1)
    edges = np.unique(np.quantile(level, np.linspace(0, 1, BINS + 1)[1:-1]))
    stratum = top * (BINS + 1) + np.searchsorted(edges, level, side="right")
    order = np.argsort(stratum, kind="stable")
    draw = numpy_generator(seed, "scan/permutation", step)
    dealt = np.empty((n, len(y)), dtype=np.int64)
    for k in range(n):
        keys = draw.random(len(y))
        shuffled = order[np.lexsort((keys[order], stratum[order]))]
        dealt[k, order] = y[shuffled]
    return dealt
