"""The biased classifier A: a weak linear softmax classifier on the concatenated concept tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from d2cp.core import rng
from d2cp.core.arrays import Floats, Ints, one_hot

# Beyond it A is fitted to five digits, not nine: a weak classifier says the same, sooner.
FEW_CLASSES = 16


@dataclass(frozen=True)
class Linear:
    """W^A reshaped to [C, K, D], and b^A [C]."""

    weight: Floats
    bias: Floats

    def logits(self, tokens: Floats) -> Floats:
        """z^A(x_i) = W^A φ(x_i) + b^A."""
        flat: Floats = tokens.reshape(len(tokens), -1)
        result: Floats = flat @ self.weight.reshape(len(self.weight), -1).T + self.bias
        return result


@dataclass(frozen=True)
class Basis:
    """An orthonormal basis [D, R_k] of each concept's tokens and one common scale.

    A token is a function of one scalar, so its D numbers span few directions. L2-regularised
    weights never leave that span: fitting inside it is the same problem, only smaller.
    """

    vectors: tuple[Floats, ...]
    scale: float

    def encode(self, tokens: Floats) -> Floats:
        parts = [tokens[:, k] @ v for k, v in enumerate(self.vectors)]
        result: Floats = np.concatenate(parts, axis=1) / self.scale
        return result

    def decode(self, weight: Floats) -> Floats:
        """Weights [C, ΣR_k] on encoded features as weights [C, K, D] on tokens."""
        cuts = np.cumsum([v.shape[1] for v in self.vectors])[:-1]
        parts = np.split(weight, cuts, axis=1)
        stacked = [part @ v.T for part, v in zip(parts, self.vectors, strict=True)]
        result: Floats = np.stack(stacked, axis=1) / self.scale
        return result


def fit_basis(tokens: Floats, tolerance: float = 1e-6) -> Basis:
    moments = np.einsum("nkd,nke->kde", tokens, tokens) / len(tokens)
    values, vectors = np.linalg.eigh(moments)
    floor = tolerance * max(float(values.max()), np.finfo(np.float64).tiny)
    kept = tuple(v[:, w > floor] for w, v in zip(values, vectors, strict=True))
    scale = float(np.sqrt(np.trace(moments, axis1=1, axis2=2).sum()))
    return Basis(kept, scale if scale > 0 else 1.0)


def sample_weights(y: Ints, classes: int, balanced: bool) -> Floats:
    """Weights of mean 1 over the images; `balanced` gives each class present the same total."""
    if not balanced:
        return np.ones(len(y))
    counts = np.bincount(y, minlength=classes)
    weights: Floats = len(y) / (np.count_nonzero(counts) * np.maximum(counts, 1)[y])
    return weights


def fit_features(x: Floats, y: Ints, classes: int, *, l2: float, weights: Floats) -> Floats:
    """[C, F+1]: weights and bias (last column, not penalised) minimising L_CE^A + l2/2·|W|².

    L-BFGS in coordinates in which the curvature at zero is the identity: tens of steps instead of
    hundreds, the same minimum.
    """
    from scipy.optimize import minimize

    rows, share = np.arange(len(y)), weights / weights.sum()
    centre = share @ x
    spread = x - centre
    values, vectors = np.linalg.eigh((spread * share[:, None]).T @ spread)
    curvature = np.maximum(values, 0) / classes + l2
    shrink = 1 / np.sqrt(np.maximum(curvature, 1e-12))
    features = np.concatenate([spread @ (vectors * shrink), np.ones((len(x), 1))], axis=1)
    penalty = np.append(l2 * shrink**2, 0.0)

    def objective(flat: Floats) -> tuple[float, Floats]:
        # In place: with many classes the [N, C] arrays are what takes the time.
        theta = flat.reshape(classes, -1)
        error = features @ theta.T
        error -= error.max(axis=1, keepdims=True)
        np.exp(error, out=error)
        error /= error.sum(axis=1, keepdims=True)
        loss = -share @ np.log(np.maximum(error[rows, y], 1e-300))
        loss += 0.5 * float((penalty * theta**2).sum())
        error[rows, y] -= 1
        error *= share[:, None]
        gradient = error.T @ features + penalty * theta
        return float(loss), gradient.ravel()

    start = np.zeros(classes * features.shape[1])
    options = {"maxiter": 300, "gtol": 1e-5, "ftol": 1e-9}
    if classes > FEW_CLASSES:
        options = {"maxiter": 60, "gtol": 1e-4, "ftol": 1e-6}
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    theta: Floats = np.asarray(found.x, dtype=np.float64).reshape(classes, -1)
    weight = (theta[:, :-1] * shrink) @ vectors.T
    bias = theta[:, -1] - weight @ centre
    result: Floats = np.concatenate([weight, bias[:, None]], axis=1)
    return result


def fit_epochs(
    x: Floats,
    y: Ints,
    classes: int,
    *,
    l2: float,
    weights: Floats,
    epochs: int,
    learning_rate: float,
    batch_size: int,
    seed: int,
) -> Floats:
    """The same loss after a few passes of mini-batch SGD: weak because it stops early."""
    targets = one_hot(y, classes)
    features = np.concatenate([x, np.ones((len(x), 1))], axis=1)
    theta = np.zeros((classes, features.shape[1]))
    for epoch in range(epochs):
        order = rng.permutation(seed, "mine/classifier", epoch, len(x))
        for first in range(0, len(x), batch_size):
            rows = order[first : first + batch_size]
            error = (softmax(features[rows] @ theta.T, axis=1) - targets[rows]) * weights[
                rows, None
            ]
            gradient = error.T @ features[rows] / len(rows)
            gradient[:, :-1] += l2 * theta[:, :-1]
            theta = theta - learning_rate * gradient
    return theta


def log_loss(probability: Floats, y: Ints) -> Floats:
    """-log p(y_i | x_i) of each image."""
    chosen = np.maximum(probability[np.arange(len(y)), y], 1e-12)
    result: Floats = -np.log(chosen)
    return result


def feature_probabilities(x: Floats, theta: Floats) -> Floats:
    result: Floats = softmax(x @ theta[:, :-1].T + theta[:, -1], axis=1)
    return result
