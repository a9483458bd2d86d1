"""CBCM's search for the spurious concepts: the equations of `concepts`, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from d2cp.config.mine import MineConfig, default_top_m
from d2cp.core import rng
from d2cp.core.arrays import Floats, Ints
from d2cp.mine import concepts as eq
from d2cp.mine.biased_classifier import Basis, Linear, feature_probabilities, fit_basis
from d2cp.mine.crossfit import (
    assign_folds,
    choose_l2,
    denoised_labels,
    fit,
    held_out_loss,
    held_out_probabilities,
    held_out_signal,
)


@dataclass(frozen=True)
class Search:
    """A, and what the equations say about each concept. C classes, K concepts, D wide."""

    classifier: Linear
    l2: float
    subset: tuple[Ints, ...]
    """I_c^hc: rows of the training split."""
    prototypes: Floats
    """Ē_{c,k} [C, K, D], as the classifier saw the tokens: centred or raw."""
    directions: Floats
    """ΔW [C, K, D]; row 1 is the paper's ΔW with two classes."""
    scores: Floats
    """r_{c,k} [C, K]."""
    contrast: Floats
    """[K]."""
    concepts: tuple[int, ...]
    """T, highest contrast first."""
    per_class: tuple[tuple[int, ...], ...]
    asked_m: int
    top_m: int
    scorer: Linear
    """What the score of T is made with: A itself, or A trained again on T alone."""

    @property
    def score_directions(self) -> Floats:
        return eq.discriminative_directions(self.scorer.weight)


def search(
    x: Floats,
    y: Ints,
    classes: int,
    config: MineConfig,
    seed: int,
    *,
    l2: float | None = None,
    m: int | None = None,
) -> Search:
    """Search tokens [N, K, D] that were centred, or not, as configured; excluded ones are zero.

    `l2` and `m` given: nothing is chosen, as in a bootstrap of the finding.
    """
    rows = selection_rows(y, config.selection_rows, seed)
    if l2 is None:
        l2 = (
            config.l2
            if config.l2 is not None
            else _chosen_l2(x[rows], y[rows], classes, config, seed)
        )
    basis = fit_basis(x)
    features = basis.encode(x)
    target = y
    if config.folds:
        fold = assign_folds(y, config.folds, seed)
        target = denoised_labels(features, y, classes, fold, config, l2, seed)
        probability = held_out_probabilities(features, target, classes, fold, config, l2, seed)
    theta = fit(features, target, classes, config, l2, seed)
    if not config.folds:
        probability = feature_probabilities(features, theta)
    classifier = Linear(basis.decode(theta[:, :-1]), theta[:, -1])
    subset = eq.high_confidence_subset(eq.confidence(probability, y), y, classes, config.rho)
    prototypes = eq.prototypes(x, subset)
    directions = eq.discriminative_directions(classifier.weight)
    scores = eq.bias_scores(prototypes, directions)
    contrast = eq.contrast(prototypes, directions)
    if m is None:
        m = config.top_m
    if m is None:
        m = choose_top_m(x[rows], y[rows], scores, classes, config, l2, seed)
    concepts, per_class, used = eq.mined_concepts(scores, m, config.exclude)
    scorer = classifier
    if config.refit:
        scorer = _fit_on(x, target, classes, concepts, config, l2, seed)
    return Search(
        classifier=classifier,
        l2=l2,
        subset=tuple(subset),
        prototypes=prototypes,
        directions=directions,
        scores=scores,
        contrast=contrast,
        concepts=tuple(sorted(concepts, key=lambda k: (-contrast[k], k))),
        per_class=tuple(per_class),
        asked_m=m,
        top_m=used,
        scorer=scorer,
    )


def features_of(x: Floats, concepts: Sequence[int]) -> tuple[Basis, Floats]:
    """Encoded tokens of some concepts, in the scale of all: L2 then weighs on them alike."""
    part = x[:, list(concepts)]
    basis = replace(fit_basis(part), scale=fit_basis(x).scale)
    return basis, basis.encode(part)


def _fit_on(
    x: Floats,
    y: Ints,
    classes: int,
    concepts: Sequence[int],
    config: MineConfig,
    l2: float,
    seed: int,
) -> Linear:
    """A on the tokens of some concepts; the others get weight 0."""
    basis, features = features_of(x, concepts)
    theta = fit(features, y, classes, config, l2, seed)
    weight = np.zeros((classes, *x.shape[1:]))
    weight[:, list(concepts)] = basis.decode(theta[:, :-1])
    return Linear(weight, theta[:, -1])


def choose_top_m(
    x: Floats, y: Ints, scores: Floats, classes: int, config: MineConfig, l2: float, seed: int
) -> int:
    """The smallest M whose T tells `signal_share` of what all concepts tell about held-out labels.

    Where nothing is held out, or the concepts tell nothing, M follows from K alone.
    """
    concepts = int(scores.shape[1])
    if not config.folds:
        return default_top_m(concepts)
    fold = assign_folds(y, config.folds, seed)

    def signal(chosen: tuple[int, ...]) -> float:
        _, features = features_of(x, chosen)
        loss = held_out_loss(features, y, classes, fold, config, l2, seed)
        return held_out_signal(loss, y, classes, config.balanced)

    whole = signal(tuple(range(concepts)))
    if whole <= 0:
        return default_top_m(concepts)
    known: dict[tuple[int, ...], float] = {}
    for m in range(1, concepts + 1):
        chosen = eq.bias_concept_set(eq.top_m(scores, m, config.exclude))
        if not chosen:
            continue
        if chosen not in known:
            known[chosen] = signal(chosen)
        if known[chosen] >= config.signal_share * whole:
            return m
    return concepts


def selection_rows(y: Ints, limit: int, seed: int) -> Ints:
    """At most `limit` rows for the costly choices, at least a few of every class, in order."""
    if len(y) <= limit:
        return np.arange(len(y), dtype=np.int64)
    order = rng.permutation(seed, "mine/selection", 0, len(y))
    rare = [order[y[order] == c][:20] for c in np.unique(y)]
    result: Ints = np.unique(np.concatenate([order[:limit], *rare]))
    return result


def _chosen_l2(x: Floats, y: Ints, classes: int, config: MineConfig, seed: int) -> float:
    if config.epochs is not None:
        return 0.0
    fold = assign_folds(y, config.folds, seed)
    return choose_l2(fit_basis(x).encode(x), y, classes, fold, config, seed)
