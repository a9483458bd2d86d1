"""The value behind a score, as a hidden variable: what an image would be called if the score were
all there is to know of it, given how often its class goes with each value.

A cue is on most images of a class and on some of the others. So each class has its own shares of
the values, and a value has one distribution of scores, whatever the class: a mixture of normal
ones, with a spread in common, fitted by expectation and maximisation. As labels of a cue that is on
80% of a class, the classes are wrong on every fifth image, the mixture's posteriors far less often.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from d2cp.scan.batched import Doubles, Floats, Ints

ROUNDS = 50
SETTLED = 1e-3
START = 0.75
"""Share of a class that is taken to have its own value before anything is known."""


@dataclass(frozen=True)
class Mixture:
    """`member` [N, C] is P(value | score, class), value v the one that speaks for class v;
    `shares` [C, C] are each class's shares of the values; a value's scores have mean `centres`
    [C, T] and `variance` in every column."""

    member: Doubles
    shares: Doubles
    centres: Doubles
    variance: float


def posterior(scores: Floats, y: Ints, classes: int) -> Doubles:
    """P(value | score, class) [N, C]."""
    return fit_mixture(scores, y, classes).member


def fit_mixture(scores: Floats, y: Ints, classes: int) -> Mixture:
    s = scores.astype(np.float64)
    of_class = np.eye(classes)[y] / np.bincount(y, minlength=classes)[y][:, None]
    shares = np.full((classes, classes), (1 - START) / max(1, classes - 1))
    np.fill_diagonal(shares, START)
    centres, variance = of_class.T @ s, float(s.var(0).mean()) + 1e-12
    member: Doubles = shares[y]
    for _ in range(ROUNDS):
        apart = (s * s).sum(1)[:, None] - 2 * s @ centres.T + (centres * centres).sum(1)
        logs = np.log(shares[y] + 1e-12) - apart / (2 * variance)
        before, member = member, np.exp(logs - logs.max(1, keepdims=True))
        member /= member.sum(1, keepdims=True)
        if np.abs(member - before).max() < SETTLED:
            break
        centres = (member.T @ s) / (member.sum(0) + 1e-9)[:, None]
        variance = float((member * apart).sum()) / s.size + 1e-12
        shares = of_class.T @ member
    return Mixture(member, shares, centres, variance)
