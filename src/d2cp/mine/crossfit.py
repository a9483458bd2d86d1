"""Held-out predictions of A, and the choices made with them.

The class label is a noisy label of the shortcut. Choosing A's strength by how well it predicts
labels it has not seen, and replacing labels that confident held-out predictions contradict, needs
no attribute label: both only ask what generalises.
"""

from __future__ import annotations

import numpy as np

from d2cp.config.mine import MineConfig
from d2cp.core import rng
from d2cp.core.arrays import Floats, Ints
from d2cp.mine.biased_classifier import (
    feature_probabilities,
    fit_epochs,
    fit_features,
    log_loss,
    sample_weights,
)


def assign_folds(y: Ints, folds: int, seed: int) -> Ints:
    """A fold an image, every class spread evenly."""
    result = np.zeros(len(y), dtype=np.int64)
    for c in np.unique(y):
        members = np.flatnonzero(y == c)
        order = rng.permutation(seed, "mine/folds", int(c), len(members))
        result[members[order]] = (np.arange(len(members)) + int(c)) % folds
    return result


def fit(x: Floats, y: Ints, classes: int, config: MineConfig, l2: float, seed: int) -> Floats:
    """A on encoded features: [C, F+1], to convergence or for the configured epochs."""
    weights = sample_weights(y, classes, config.balanced)
    if config.epochs is None:
        return fit_features(x, y, classes, l2=l2, weights=weights)
    return fit_epochs(
        x,
        y,
        classes,
        l2=l2,
        weights=weights,
        epochs=config.epochs,
        learning_rate=config.learning_rate,
        batch_size=config.batch_size,
        seed=seed,
    )


def held_out_probabilities(
    x: Floats, y: Ints, classes: int, fold: Ints, config: MineConfig, l2: float, seed: int
) -> Floats:
    """p_A(· | x_i) [N, C] from the classifier that did not see image i."""
    result = np.empty((len(x), classes))
    for j in np.unique(fold):
        out = fold == j
        theta = fit(x[~out], y[~out], classes, config, l2, seed)
        result[out] = feature_probabilities(x[out], theta)
    return result


def held_out_loss(
    x: Floats, y: Ints, classes: int, fold: Ints, config: MineConfig, l2: float, seed: int
) -> Floats:
    """Weighted held-out log-loss of each image."""
    probability = held_out_probabilities(x, y, classes, fold, config, l2, seed)
    result: Floats = log_loss(probability, y) * sample_weights(y, classes, config.balanced)
    return result


def choose_l2(x: Floats, y: Ints, classes: int, fold: Ints, config: MineConfig, seed: int) -> float:
    """The strongest L2 with which A tells `signal_share` of what it tells at best about held-out
    labels: what is learnt first is the easy part. The strongest of all where it tells nothing.

    Candidates are tried from the strongest on, until two in a row tell less than the best.
    """
    tried: list[tuple[float, float]] = []
    worse = 0
    for l2 in sorted(config.l2_grid, reverse=True):
        loss = held_out_loss(x, y, classes, fold, config, l2, seed)
        signal = held_out_signal(loss, y, classes, config.balanced)
        worse = worse + 1 if tried and signal <= max(s for _, s in tried) else 0
        tried.append((l2, signal))
        if worse == 2:
            break
    best = max(signal for _, signal in tried)
    enough = [l2 for l2, signal in tried if signal >= config.signal_share * best]
    return enough[0] if best > 0 else tried[0][0]


def flip_labels(probability: Floats, y: Ints) -> Ints:
    """Labels with every confident held-out contradiction replaced by the prediction.

    XRM flips with probability (p − 1/n)·n/(n−1); the cut at one half of it keeps this repeatable.
    Each round starts from y again, so a flip can revert.
    """
    classes = probability.shape[1]
    top = probability.max(axis=1)
    sure = (top - 1 / classes) * classes / (classes - 1) > 0.5
    result: Ints = np.where(sure, probability.argmax(axis=1), y).astype(np.int64)
    return result


def denoised_labels(
    x: Floats, y: Ints, classes: int, fold: Ints, config: MineConfig, l2: float, seed: int
) -> Ints:
    """y after `flip_rounds` rounds; a round that would empty a class is not taken."""
    labels = y
    for _ in range(config.flip_rounds):
        probability = held_out_probabilities(x, labels, classes, fold, config, l2, seed)
        proposed = flip_labels(probability, y)
        if len(np.unique(proposed)) < len(np.unique(y)) or np.array_equal(proposed, labels):
            break
        labels = proposed
    return labels


def held_out_signal(loss: Floats, y: Ints, classes: int, balanced: bool) -> float:
    """Nats about the label: the log-loss of the class shares minus the held-out log-loss."""
    weights = sample_weights(y, classes, balanced)
    shares = np.bincount(y, weights=weights, minlength=classes) / weights.sum()
    present = shares[shares > 0]
    return float(-(present * np.log(present)).sum() - loss.mean())
