"""Figures that tell a shortcut from the class itself and from chance. No attribute label is used.

Keys of the evidence, all of the training split:
    images, classes, concepts, mined      N, C, K, |T|
    chance                                1 / C
    accuracy_all, accuracy_mined          held-out balanced accuracy of A on all concepts, on T
    signal_all, signal_mined              held-out nats about the label, over its entropy
    signal_share                          signal_mined / signal_all: what T carries of the signal
    agreement, disagreeing                share of images whose pseudo label is that of their
                                          class, and the number for which it is not
    confident_disagreement                rate of contradicted labels among the surest quarter of
                                          the held-out predictions, over the rate among all
    confident_disagreement_error          its standard error
    bic_gain                              BIC of one Gaussian minus two on the score, per image
    separation                            Ashman's D of those two
    stability_concepts, stability_labels  mean Jaccard index of T, and mean balanced agreement of
                                          the pseudo labels, across bootstrap resamples
    values, smallest_cell, empty_cells    values in use; the (y, pseudo) cells
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from d2cp.config.mine import MineConfig
from d2cp.core import rng
from d2cp.core.arrays import Floats, Ints, balanced_accuracy
from d2cp.mine.biased_classifier import log_loss, sample_weights
from d2cp.mine.crossfit import assign_folds, held_out_probabilities, held_out_signal
from d2cp.mine.mixture import fit_two_gaussians
from d2cp.mine.rule import Rule, make_rule
from d2cp.mine.search import Search, features_of, search, selection_rows

Evidence = dict[str, Any]


def gather(
    tokens: Floats,
    x: Floats,
    y: Ints,
    rule: Rule,
    found: Search,
    config: MineConfig,
    seed: int,
    *,
    scalars: ArrayLike | None = None,
) -> Evidence:
    """The evidence for a finding; `x` are the tokens as A saw them."""
    classes, concepts = len(found.scores), found.scores.shape[1]
    rows = selection_rows(y, config.selection_rows, seed)
    held = config if config.folds else replace(config, folds=5)
    every = tuple(range(concepts))
    all_of = held_out(x[rows], y[rows], classes, every, held, found.l2, seed)
    of_t = held_out(x[rows], y[rows], classes, found.concepts, held, found.l2, seed)
    entropy = held_out_signal(np.zeros(len(rows)), y[rows], classes, config.balanced)
    signals = [_signal(p, y[rows], classes, config.balanced) for p in (all_of, of_t)]
    labels, score = rule.labels(tokens, scalars), rule.score(tokens, scalars)
    cells = cell_counts(y, labels, classes, rule.values)
    present = cells.sum(axis=1) > 0
    agree = np.isin(np.arange(len(y)), agreeing(y, labels, cells))
    mixture = fit_two_gaussians(score)
    ratio, ratio_error = confident_disagreement(of_t, y[rows])
    concept_stability, label_stability = stability(tokens, x, y, rule, found, config, seed, scalars)
    return {
        "images": len(y),
        "classes": classes,
        "concepts": concepts,
        "mined": len(found.concepts),
        "chance": 1 / int(present.sum()),
        "accuracy_all": balanced_accuracy(all_of.argmax(axis=1), y[rows]),
        "accuracy_mined": balanced_accuracy(of_t.argmax(axis=1), y[rows]),
        "signal_all": signals[0] / entropy,
        "signal_mined": signals[1] / entropy,
        "signal_share": float(np.clip(signals[1] / signals[0], 0, 1)) if signals[0] > 0 else 0.0,
        "agreement": float(agree.mean()),
        "disagreeing": int((~agree).sum()),
        "confident_disagreement": ratio,
        "confident_disagreement_error": ratio_error,
        "bic_gain": max(mixture.bic_gain, -float(len(y))) / len(y),
        "separation": mixture.ashman_d,
        "stability_concepts": concept_stability,
        "stability_labels": label_stability,
        "values": len(np.unique(labels)),
        "smallest_cell": int(cells[present].min()),
        "empty_cells": int((cells[present] == 0).sum()),
    }


def held_out(
    x: Floats,
    y: Ints,
    classes: int,
    concepts: tuple[int, ...],
    config: MineConfig,
    l2: float,
    seed: int,
) -> Floats:
    """Held-out class probabilities of A on some of the concepts, L2 as strong as on all of them."""
    _, features = features_of(x, concepts)
    fold = assign_folds(y, config.folds, seed)
    return held_out_probabilities(features, y, classes, fold, config, l2, seed)


def confident_disagreement(probability: Floats, y: Ints) -> tuple[float, float]:
    """(ratio, standard error): how often the surest quarter of the held-out predictions
    is contradicted, over how often all are.

    A shortcut leaves the label to chance once its value is known, so that a sure prediction is
    contradicted as often as any (near 1). Errors about the class itself crowd near the boundary
    (near 0). The quarters are taken within each predicted class.
    """
    guess, sure = probability.argmax(axis=1), probability.max(axis=1)
    wrong = guess != y
    if not wrong.any():
        return 0.0, 0.0
    expected = observed = 0.0
    for c in np.unique(guess):
        mine = np.flatnonzero(guess == c)
        best = mine[np.argsort(-sure[mine], kind="stable")[: max(1, len(mine) // 4)]]
        expected += float(wrong[mine].mean()) * len(best)
        observed += float(wrong[best].sum())
    return observed / expected, max(observed, 1.0) ** 0.5 / expected


def cell_counts(y: Ints, labels: Ints, classes: int, values: int) -> Ints:
    """Images in each (y, ã) cell [C, A]."""
    flat = np.bincount(y * values + labels, minlength=classes * values)
    return flat.reshape(classes, values).astype(np.int64)


def agreeing(y: Ints, labels: Ints, cells: Ints) -> Ints:
    """Rows whose class is the likeliest one of their pseudo label, classes counted as equal."""
    shares = cells / np.maximum(cells.sum(axis=1, keepdims=True), 1)
    result: Ints = np.flatnonzero(shares.argmax(axis=0)[labels] == y)
    return result


def stability(
    tokens: Floats,
    x: Floats,
    y: Ints,
    rule: Rule,
    found: Search,
    config: MineConfig,
    seed: int,
    scalars: ArrayLike | None,
) -> tuple[float, float]:
    """(Jaccard index of T, agreement of ã) of resampled findings with the finding itself."""
    rows = selection_rows(y, config.selection_rows, seed)
    reference = rule.labels(tokens[rows], None if scalars is None else np.asarray(scalars)[rows])
    # Within a resample an image may sit on both sides of a fold, so nothing is held out there.
    plain = replace(config, folds=0, flip_rounds=0, l2=found.l2, values=rule.values)
    jaccard, agreement = [], []
    for draw in range(config.bootstrap):
        pick = resample(y[rows], seed, draw)
        drawn = rows[pick]
        again = search(
            x[drawn], y[drawn], len(found.scores), plain, seed, l2=found.l2, m=found.asked_m
        )
        chosen = None if scalars is None else np.asarray(scalars)[drawn]
        refit, _ = make_rule(
            tokens[drawn],
            y[drawn],
            rule.means,
            again,
            plain,
            seed,
            scalars=chosen,
        )
        both = set(again.concepts) & set(found.concepts)
        jaccard.append(len(both) / len(set(again.concepts) | set(found.concepts)))
        kept = None if scalars is None else np.asarray(scalars)[rows]
        agreement.append(balanced_accuracy(refit.labels(tokens[rows], kept), reference))
    return float(np.mean(jaccard)), float(np.mean(agreement))


def resample(y: Ints, seed: int, draw: int) -> Ints:
    """A bootstrap draw that keeps every class's count."""
    generator = rng.numpy_generator(seed, "mine/bootstrap", draw)
    parts = []
    for c in np.unique(y):
        members = np.flatnonzero(y == c)
        parts.append(members[generator.integers(len(members), size=len(members))])
    return np.sort(np.concatenate(parts))


def _signal(probability: Floats, y: Ints, classes: int, balanced: bool) -> float:
    loss: Floats = log_loss(probability, y) * sample_weights(y, classes, balanced)
    return held_out_signal(loss, y, classes, balanced)
