"""Answers for images that a model was not trained on, after every epoch of every draw of a search.

Validation images are such images. Where too few of them go against the finding, training images are
made so: a draw is trained K times more, each time without a part of the training images, and
answers for that part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from d2cp.config.debias import DebiasConfig
from d2cp.core.arrays import Ints
from d2cp.core.rng import permutation
from d2cp.debias.labels import Labels, sides
from d2cp.debias.loop import Evaluate, Score
from d2cp.debias.spurious_solution import SpuriousSolution
from d2cp.debias.train import train_on_features
from d2cp.debias.training_tiers import Tier, spurious_solution
from d2cp.debias.transplants import Transplants

ENOUGH = 30  # validation images of a class against the finding
LEAST = 4  # training images for every fold


@dataclass(frozen=True)
class Fold:
    """Rows to train on, rows to answer for, and W^a of the former where it is solved."""

    train: Ints
    held: Ints
    solution: SpuriousSolution | None = None


@dataclass(frozen=True)
class HeldOut:
    """`answers` [draws, states, n] for `rows`, each by a model that was not trained on it."""

    rows: Ints
    steps: Ints  # of each state
    answers: Ints


def fold_numbers(groups: Ints, folds: int, *, seed: int) -> Ints:
    """A fold for each image; every group is spread over them as evenly as can be."""
    order = permutation(seed, "debias/cross-fit", 0, len(groups))
    order = order[np.argsort(groups[order], kind="stable")]
    numbers = np.empty(len(groups), np.int64)
    numbers[order] = np.arange(len(groups)) % folds
    return numbers


def few_against(labels: Labels) -> bool:
    """Whether a class has too few validation images that go against the finding."""
    counts = np.bincount(sides(labels)[labels.val], minlength=2 * labels.classes)
    return bool(counts[1::2].min() < ENOUGH)


def folds_of(labels: Labels, count: int, *, seed: int) -> list[Fold]:
    """All training images, to answer for validation; then, where that is not enough, `count` parts
    of them left out in turn."""
    whole = [Fold(labels.train, labels.val)]
    if count < 2 or len(labels.train) < LEAST * count or not few_against(labels):
        return whole
    numbers = fold_numbers(sides(labels)[labels.train], count, seed=seed)
    parts = [(labels.train[numbers != k], labels.train[numbers == k]) for k in range(count)]
    return [*whole, *(Fold(train, held) for train, held in parts)]


def joined(labels: Labels, more: Transplants | None) -> Labels:
    """`labels` with those of `more` where there is any."""
    return labels if more is None else more.join(labels)


def solved(
    folds: Sequence[Fold],
    features: Tensor,
    labels: Labels,
    config: DebiasConfig,
    *,
    seed: int,
    more: Transplants | None = None,
) -> list[Fold]:
    """The folds with a W^a of their own, where the spurious branch is solved."""
    if not (config.dual_branch and config.spurious_fit == "solved"):
        return list(folds)
    made = []
    for fold in folds:
        own = joined(replace(labels, train=fold.train), more)
        made.append(
            replace(fold, solution=spurious_solution(features, own, config, seed=seed)),
        )
    return made


def held_out(
    features: Tensor,
    labels: Labels,
    folds: Sequence[Fold],
    settings: Sequence[DebiasConfig],
    *,
    seed: int,
    step: Callable[[], None] = lambda: None,
    more: Transplants | None = None,
) -> HeldOut:
    """What every one of `settings` answers after each evaluation; `step` is called after each."""
    draws, steps = [], np.empty(0, np.int64)
    for config in settings:
        parts = []
        config = replace(config, epoch_size=config.epoch_size or len(labels.train))
        for fold in folds:
            states: list[Ints] = []
            trained = train_on_features(
                features,
                joined(replace(labels, train=fold.train), more),
                config,
                seed=seed,
                backbone_parameters=1,
                stage="cross-fit",
                solution=fold.solution,
                evaluate_with=_watching(fold.held, states),
            )
            steps = np.array([int(entry["step"]) for entry in trained.fitted.history])
            parts.append(np.stack(states))
        draws.append(np.concatenate(parts, axis=1))
        step()
    return HeldOut(np.concatenate([fold.held for fold in folds]), steps, np.stack(draws))


def _watching(held: Ints, states: list[Ints]) -> Callable[[Tier], Evaluate]:
    """An evaluation that chooses nothing: it adds the answers for `held` to `states`."""

    def of(tier: Tier) -> Evaluate:
        def evaluate() -> tuple[Score, dict[str, float]]:
            states.append(tier.class_logits(held).argmax(1).astype(np.int64))
            return (0.0,), {}

        return evaluate

    return of
