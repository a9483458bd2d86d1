"""Stage 2 from labels to a trained model; the ablation rows and ERM are settings of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from accelerate import Accelerator
from torch import Tensor

from d2cp.backbone import Backbone
from d2cp.config.debias import DebiasConfig
from d2cp.core.arrays import Floats, Rows
from d2cp.core.checkpoint import Checkpointer
from d2cp.core.device import make_accelerator
from d2cp.core.metrics_log import MetricsLog
from d2cp.data.store import ImageStore
from d2cp.debias.adapters import AdapterClassifier
from d2cp.debias.class_solution import install_class_head
from d2cp.debias.labels import (
    Labels,
    evaluation_rows,
    selection_groups,
    selection_used,
    training_groups,
)
from d2cp.debias.logits import Classifier
from d2cp.debias.loop import Evaluate, Fitted, Order, Score, fit, require_finite_answers
from d2cp.debias.objective import D2CPObjective
from d2cp.debias.parameter_count import ParameterCount
from d2cp.debias.sampler import drawn_order, natural_order, sample_weights
from d2cp.debias.soft_values import soft_weights
from d2cp.debias.solved_adapter import SolvedDualAdapter
from d2cp.debias.solved_branch import SolvedDualBranch
from d2cp.debias.spurious_solution import SpuriousSolution
from d2cp.debias.training_tiers import DUAL, Model, Tier, feature_tier, prompt_tier


@dataclass(frozen=True)
class Trained:
    """A model in its best state, and how it got there."""

    model: Model
    config: DebiasConfig
    seed: int
    fitted: Fitted
    parameters: ParameterCount

    def classifier(self) -> Classifier:
        """What predicts the class: one branch, the projection folded into its head."""
        return self.model.classifier() if isinstance(self.model, DUAL) else self.model

    def shortcut(self) -> Classifier | None:
        """What predicts the suspected shortcut value, where there is a spurious branch."""
        return self.model.shortcut() if isinstance(self.model, DUAL) else None


def plain(config: DebiasConfig) -> DebiasConfig:
    """The control: same tier and budget; natural sampling, one branch, plain cross-entropy."""
    return replace(
        config,
        use_pseudo=False,
        dual_branch=False,
        use_xrm=False,
        recolour=False,
        prompt_start="drawn",
    )


def train_d2cp(
    backbone: Backbone,
    store: ImageStore,
    labels: Labels,
    config: DebiasConfig,
    *,
    seed: int,
    stage: str = "debias",
    checkpointer: Checkpointer | None = None,
    log: MetricsLog | None = None,
    log_every: int = 10,
    accelerator: Accelerator | None = None,
    quiet: bool = False,
) -> Trained:
    """Prompts, trained as `config` says: `use_pseudo`, `dual_branch` and `use_xrm` are the
    ablation rows, and none of them is ERM."""
    accelerator = accelerator or make_accelerator(config.precision)
    tier = prompt_tier(backbone, store, labels, config, seed=seed, device=accelerator.device)
    fitted = _fit(
        tier,
        labels,
        config,
        seed=seed,
        stage=stage,
        checkpointer=checkpointer,
        log=log,
        log_every=log_every,
        accelerator=accelerator,
        quiet=quiet,
    )
    parameters = ParameterCount.of(tier.model, backbone.parameter_count)
    return Trained(tier.model, config, seed, fitted, parameters)


def train_on_features(
    features: Tensor,
    labels: Labels,
    config: DebiasConfig,
    *,
    seed: int,
    backbone_parameters: int,
    stage: str = "debias",
    log: MetricsLog | None = None,
    accelerator: Accelerator | None = None,
    solution: SpuriousSolution | None = None,
    evaluate_with: Callable[[Tier], Evaluate] | None = None,
) -> Trained:
    """Over frozen features, trained or solved as `config` says. Seconds: no checkpoint, no bar.
    `solution` spares a second solving of the same W^a; `evaluate_with` makes another evaluation
    than that of the selection rule."""
    accelerator = accelerator or make_accelerator(config.precision)
    tier = feature_tier(
        features, labels, config, seed=seed, device=accelerator.device, solution=solution
    )
    evaluate = evaluate_with(tier) if evaluate_with else None
    if config.solves_class:
        assert isinstance(tier.model, SolvedDualAdapter | AdapterClassifier)
        install_class_head(tier.model, features, labels, config)
        fitted = _looked_at(evaluate or evaluator(tier, labels, config, seed=seed))
    else:
        fitted = _fit(
            tier,
            labels,
            config,
            seed=seed,
            stage=stage,
            log=log,
            accelerator=accelerator,
            quiet=True,
            evaluate=evaluate,
        )
    parameters = ParameterCount.of(tier.model, backbone_parameters)
    return Trained(tier.model, config, seed, fitted, parameters)


def _looked_at(evaluate: Evaluate | None) -> Fitted:
    """Of a model that took no step: its one state."""
    if evaluate is None:
        return Fitted(0, 0, None)
    score, figures = evaluate()
    return Fitted(0, 0, score, [{"step": 0, **figures}])


def _fit(
    tier: Tier,
    labels: Labels,
    config: DebiasConfig,
    *,
    seed: int,
    stage: str,
    accelerator: Accelerator,
    quiet: bool,
    checkpointer: Checkpointer | None = None,
    log: MetricsLog | None = None,
    log_every: int = 10,
    evaluate: Evaluate | None = None,
) -> Fitted:
    objective = D2CPObjective(tier.model, tier.branch_logits, labels, config)
    epoch_size = (config.epoch_size or len(labels.train)) if len(labels.train) else 0
    return fit(
        objective,
        objective,
        training_order(labels, config, epoch_size, seed=seed),
        tier.read,
        config,
        epoch_size=epoch_size,
        evaluate=evaluate or evaluator(tier, labels, config, seed=seed),
        from_solution=isinstance(tier.model, SolvedDualBranch),
        checkpointer=checkpointer,
        log=log,
        log_every=log_every,
        stage=stage,
        accelerator=accelerator,
        quiet=quiet,
    )


def training_order(labels: Labels, config: DebiasConfig, draws: int, *, seed: int) -> Order:
    """epoch -> rows: weighted by the groups of the config, or natural where it has none."""
    weights = training_weights(labels, config)

    def order(epoch: int) -> Rows:
        if weights is None:
            drawn = natural_order(len(labels.train), draws, seed=seed, epoch=epoch)
        else:
            drawn = drawn_order(weights, draws, seed=seed, epoch=epoch)
        return labels.train[drawn]

    return order


def training_weights(labels: Labels, config: DebiasConfig) -> Floats | None:
    """Of the training rows; None for natural sampling."""
    groups = training_groups(labels, config)
    if groups is None:
        return None
    if config.use_pseudo and config.soft_values and labels.shares is not None:
        return soft_weights(labels.y[labels.train], labels.shares[labels.train], config.alpha)
    return sample_weights(groups[labels.train], config.alpha)


def evaluator(tier: Tier, labels: Labels, config: DebiasConfig, *, seed: int) -> Evaluate | None:
    """Worst-group accuracy on validation by the selection rule; ties go to the mean over groups."""
    if not len(labels.val):
        return None
    groups = selection_groups(labels, selection_used(config))
    rows = evaluation_rows(labels, groups, config.evaluate_per_group, seed=seed)

    def evaluate() -> tuple[Score, Mapping[str, float]]:
        logits = tier.class_logits(rows)
        require_finite_answers(logits, config)
        right = logits.argmax(1) == labels.y[rows]
        accuracies = [right[groups[rows] == g].mean() for g in np.unique(groups[rows])]
        worst, mean = float(min(accuracies)), float(np.mean(accuracies))
        figures = {"worst_group": worst, "group_mean": mean, "mean": float(right.mean())}
        return (worst, mean), figures

    return evaluate
