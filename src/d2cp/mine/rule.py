"""The frozen rule from tokens to a pseudo label: one for train, validation, test and new images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax

from d2cp.config.mine import MineConfig
from d2cp.core.arrays import Floats, Ints
from d2cp.errors import ConfigError, DataError
from d2cp.mine import threshold as cuts
from d2cp.mine.mixture import Clusters, choose_clusters, cluster_counts
from d2cp.mine.score import contributions, partial_logits, scalar_signs, signed_scalar_score
from d2cp.mine.search import Search


@dataclass(frozen=True)
class ScalarParts:
    """Over T: how `signed_scalars` standardises and orients each concept's scalar."""

    means: Floats
    stds: Floats
    signs: Floats


@dataclass(frozen=True)
class Rule:
    """T, its directions, and a cut of the score, or clusters of the contribution vectors."""

    means: Floats
    directions: Floats
    bias: Floats
    concepts: tuple[int, ...]
    threshold: float
    clusters: Clusters | None = None
    scalars: ScalarParts | None = None

    @property
    def values(self) -> int:
        return 2 if self.clusters is None else len(self.clusters.centres)

    def score(self, tokens: Floats, scalars: ArrayLike | None = None) -> Floats:
        """u_i; with more than two classes the largest partial logit, how hard the mined concepts
        push towards any class."""
        if self.scalars is not None:
            chosen = chosen_scalars(scalars, self.concepts, len(tokens))
            parts = self.scalars
            return signed_scalar_score(chosen, parts.means, parts.stds, parts.signs)
        logits = partial_logits(tokens, self.means, self.directions, self.concepts)
        result: Floats = logits[:, 1] if logits.shape[1] == 2 else logits.max(axis=1)
        return result

    def vectors(self, tokens: Floats) -> Floats:
        """Contribution vectors. Two classes: one number a mined concept. More: the classes the
        mined concepts alone would predict, as probabilities, in a basis of the plane they span;
        values of the attribute that favour the same classes fall together there."""
        if len(self.directions) == 2:
            push = contributions(tokens, self.means, self.directions, self.concepts)
            result: Floats = push[:, 1]
            return result
        classes = len(self.directions)
        logits = partial_logits(tokens, self.means, self.directions, self.concepts)
        # The direction of a class is C/(C-1) times its weight minus the mean weight.
        favoured = softmax(logits * (classes - 1) / classes + self.bias, axis=-1)
        rotated: Floats = favoured @ zero_sum_basis(classes)
        return rotated

    def labels(self, tokens: Floats, scalars: ArrayLike | None = None) -> Ints:
        if self.clusters is not None:
            return self.clusters.assign(self.vectors(tokens))
        result: Ints = (self.score(tokens, scalars) > self.threshold).astype(np.int64)
        return result


def make_rule(
    tokens: Floats,
    y: Ints,
    means: Floats,
    found: Search,
    config: MineConfig,
    seed: int,
    *,
    scalars: ArrayLike | None = None,
) -> tuple[Rule, tuple[str, ...]]:
    """Fit the cut, or the clusters, on the training tokens; and what a person should know."""
    directions, concepts = found.score_directions, found.concepts
    classes = len(directions)
    parts = None
    if config.score == "signed_scalars":
        if classes > 2:
            raise ConfigError(
                f"mine.score = 'signed_scalars' with {classes} classes",
                expected="two classes",
                remedy="use mine.score = 'partial_logit'",
            )
        parts = _scalar_parts(scalars, tokens, means, directions, concepts)
    bias = found.scorer.bias
    if not config.centre:
        # A saw raw tokens, the rule subtracts their means: move their part into the bias.
        chosen = list(concepts)
        bias = bias + np.einsum("kd,ckd->c", means[chosen], found.scorer.weight[:, chosen])
    rule = Rule(means, directions, bias, concepts, 0.0, None, parts)
    values = config.values if config.values is not None or classes > 2 else 2
    if classes > 2 or values != 2 or config.score == "clusters":
        vectors = rule.vectors(tokens)
        start = np.stack([vectors[rows].mean(axis=0) for rows in found.subset if len(rows)])
        limit = max(config.max_values or classes, 2)
        options = (values,) if values is not None else cluster_counts(limit)
        return replace(rule, clusters=choose_clusters(vectors, start, options, seed)), ()
    cut, warnings = _cut(rule.score(tokens, scalars), y, found.subset, config)
    return replace(rule, threshold=cut), warnings


def _cut(
    score: Floats, y: Ints, subset: Sequence[Ints], config: MineConfig
) -> tuple[float, tuple[str, ...]]:
    # The score is linear, so a prototype's score is the mean score of its rows.
    middle = cuts.midpoint(*(float(score[rows].mean()) for rows in subset))
    mixture = cuts.gmm(score)
    share = cuts.disagreement(score, middle, mixture)
    warnings: tuple[str, ...] = ()
    if share > config.disagreement_warning:
        warnings = (
            f"the midpoint and the mixture threshold label {share:.1%} of the training images "
            "differently: look at the score histogram",
        )
    options = {
        "youden": cuts.youden(score, y == 1),
        "midpoint": middle,
        "zero": 0.0,
        "gmm": mixture,
        "otsu": cuts.otsu(score),
    }
    return options[config.threshold], warnings


def _scalar_parts(
    scalars: ArrayLike | None,
    tokens: Floats,
    means: Floats,
    directions: Floats,
    concepts: tuple[int, ...],
) -> ScalarParts:
    chosen = chosen_scalars(scalars, concepts, len(tokens))
    push = contributions(tokens, means, directions, concepts)[:, 1]
    signs = scalar_signs(chosen, push)
    return ScalarParts(chosen.mean(axis=0), chosen.std(axis=0), signs)


def chosen_scalars(scalars: ArrayLike | None, concepts: Sequence[int], rows: int) -> Floats:
    if scalars is None:
        raise DataError(
            "mine.score = 'signed_scalars' without the concept scalars",
            expected=f"scalars [{rows}, K] beside the tokens",
        )
    result: Floats = np.asarray(scalars, dtype=np.float64)[:, list(concepts)]
    return result


def zero_sum_basis(size: int) -> Floats:
    """[size, size-1], orthonormal columns orthogonal to the ones (Helmert)."""
    basis = np.zeros((size, size - 1))
    for j in range(1, size):
        basis[:j, j - 1] = 1.0
        basis[j, j - 1] = -float(j)
        basis[:, j - 1] /= np.sqrt(j * (j + 1))
    return basis
