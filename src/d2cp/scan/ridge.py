"""Cross-fitted ridge regression of the class on a lens's features, for many labellings at once.

The factorisation of the features does not depend on the labels, so that hundreds of permuted
labellings cost little more than the true one. Every labelling, permuted or not, goes through the
same steps: the strength of L2 is chosen by generalised cross-validation within the training folds,
the score of a row comes from the fold model that did not see it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from d2cp.core.rng import permutation
from d2cp.scan.batched import Doubles, Floats, Ints

L2_GRID = (1e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0, 3.0, 10.0)
"""Candidates, relative to the mean eigenvalue of the features' second moments."""


@dataclass(frozen=True)
class Part:
    """The rows outside one fold: what their features alone decide."""

    n: int
    sums: Doubles  # Σ x [D]
    rotation: Floats  # eigenvectors of the centred second moments [D, R]
    values: Doubles  # eigenvalues [R]


@dataclass(frozen=True)
class Folds:
    x: Floats
    fold: Ints
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Fit:
    """`held_out` [N, T]: each row's score from the model that never saw its label.
    `weight` [F, D, T] and `intercept` [F, T] are the fold models, on one scale."""

    held_out: Floats
    weight: Floats
    intercept: Floats


def assign_folds(n: int, folds: int, seed: int) -> Ints:
    """Folds of even sizes, blind to the labels."""
    out = np.empty(n, dtype=np.int64)
    out[permutation(seed, "scan/folds", 0, n)] = np.arange(n) % folds
    return out


def prepare(x: Floats, fold: Ints) -> Folds:
    """Factorise standardised features [N, D], once for each fold left out."""
    count = int(fold.max()) + 1
    members = [np.flatnonzero(fold == k) for k in range(count)]
    sums = np.stack([x[rows].sum(0, dtype=np.float64) for rows in members])
    grams = np.stack([(x[rows].T @ x[rows]).astype(np.float64) for rows in members])
    parts = []
    for k in range(count):
        n = len(x) - len(members[k])
        total = sums.sum(0) - sums[k]
        moments = (grams.sum(0) - grams[k] - np.outer(total, total) / n) / n
        values, vectors = np.linalg.eigh(moments)
        keep = values > 1e-6 * max(float(values[-1]), 1e-12)
        parts.append(Part(n, total, vectors[:, keep].astype(np.float32), values[keep]))
    return Folds(x, fold, tuple(parts))


def cross_fit(folds: Folds, targets: Floats, trust: float = 0.0) -> Fit:
    """Fit every column of `targets` [N, T]. Scores are centred and scaled fold by fold, by the
    mean and spread of the scores themselves: no label is used for it. `trust` above 0 shrinks
    features the more, the less each alone goes with the targets (see `trusting`)."""
    count = len(folds.parts)
    members = [np.flatnonzero(folds.fold == k) for k in range(count)]
    products = np.stack([folds.x[m].T @ targets[m] for m in members]).astype(np.float64)
    sums = np.stack([targets[m].sum(0, dtype=np.float64) for m in members])
    squares = np.stack([(targets[m].astype(np.float64) ** 2).sum(0) for m in members])
    held_out = np.zeros(targets.shape, dtype=np.float32)
    weights, intercepts = [], []
    for k, part in enumerate(folds.parts):
        total = sums.sum(0) - sums[k]
        moment = (products.sum(0) - products[k] - np.outer(part.sums, total / part.n)) / part.n
        variance = (squares.sum(0) - squares[k]) / part.n - (total / part.n) ** 2
        if trust:
            beta = trusting(part, moment, variance, trust)
        else:
            beta = part.rotation @ solve(part, part.rotation.T @ moment, variance)
        raw = folds.x[members[k]] @ beta
        mean, spread = raw.mean(0), raw.std(0) + 1e-9
        held_out[members[k]] = (raw - mean) / spread
        weights.append(beta / spread)
        intercepts.append(-mean / spread)
    return Fit(
        held_out, np.stack(weights).astype(np.float32), np.stack(intercepts).astype(np.float32)
    )


def trusting(part: Part, moment: Doubles, variance: Doubles, trust: float) -> Floats:
    """Coefficients [D, T] of an adaptive ridge: a feature is first scaled by the size of its own
    moments to the power of `trust`, so that L2 costs the ones that tell nothing by themselves more.
    A cue that few features read is then not drowned by the noise of hundreds of others."""
    size = np.sqrt((moment**2 / np.maximum(variance, 1e-12)).mean(axis=1))
    scale = (size / max(float(size.max(initial=0)), 1e-12)) ** trust
    half = (scale[:, None] * part.rotation) * np.sqrt(part.values)
    values, vectors = np.linalg.eigh(half @ half.T)
    keep = values > 1e-6 * max(float(values[-1]), 1e-12)
    scaled = Part(part.n, part.sums, vectors[:, keep].astype(np.float32), values[keep])
    rotated = scaled.rotation.T @ (scale[:, None] * moment)
    beta: Floats = scale[:, None] * (scaled.rotation @ solve(scaled, rotated, variance))
    return beta


def solve(part: Part, moment: Doubles, variance: Doubles) -> Floats:
    """Rotated coefficients [R, T]: for each column the L2 with the least generalised
    cross-validation error, residual / (1 − degrees of freedom / n)²."""
    best = np.full(moment.shape[1], np.inf)
    solution = np.zeros(moment.shape)
    if not len(part.values):  # features that do not vary tell nothing
        return solution.astype(np.float32)
    for l2 in L2_GRID:
        shrink = 1 / (part.values + l2 * part.values.mean())
        candidate = moment * shrink[:, None]
        residual = variance - 2 * (moment * candidate).sum(0)
        residual += (part.values[:, None] * candidate**2).sum(0)
        freedom = 1 + float((part.values * shrink).sum())
        error = residual / max(1 - freedom / part.n, 1e-3) ** 2
        better = error < best
        best = np.where(better, error, best)
        solution[:, better] = candidate[:, better]
    return solution.astype(np.float32)
