"""Stage 2 from labels to a trained model; the ablation rows and ERM are settings of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from accelerate import Accelerator

from d2cp.backbone import Backbone
from d2cp.config.debias import DebiasConfig
from d2cp.core.arrays import Rows
from d2cp.core.checkpoint import Checkpointer
from d2cp.core.metrics_log import MetricsLog
from d2cp.data.store import ImageStore
from d2cp.debias.branch_logits import prompt_logits
from d2cp.debias.dual_branch import DualBranch, ParameterCount, PromptClassifier
from d2cp.debias.labels import Labels, evaluation_rows, selection_groups, training_groups
from d2cp.debias.logits import predict_logits
from d2cp.debias.loop import Evaluate, Fitted, Order, Score, fit
from d2cp.debias.objective import D2CPObjective
from d2cp.debias.reading import training_reader
from d2cp.debias.sampler import natural_order, weighted_order


@dataclass(frozen=True)
class Trained:
    """A model in its best state, and how it got there."""

    model: DualBranch | PromptClassifier
    config: DebiasConfig
    seed: int
    fitted: Fitted
    parameters: ParameterCount

    def classifier(self) -> PromptClassifier:
        """What predicts the class: one branch, the projection folded into its head."""
        return self.model.classifier() if isinstance(self.model, DualBranch) else self.model

    def shortcut(self) -> PromptClassifier | None:
        """What predicts the suspected shortcut value, where there is a spurious branch."""
        return self.model.shortcut() if isinstance(self.model, DualBranch) else None


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
    """Train as `config` says: `use_pseudo`, `dual_branch` and `use_xrm` are the ablation rows."""
    accelerator = accelerator or Accelerator()
    backbone.to(accelerator.device)
    model = new_model(backbone, labels, config, seed=seed)
    model.to(accelerator.device)
    logits = prompt_logits(model, backbone, config, seed=seed)
    objective = D2CPObjective(model, logits, labels, config)
    epoch_size = (config.epoch_size or len(labels.train)) if len(labels.train) else 0
    fitted = fit(
        objective,
        objective,
        training_order(labels, config, epoch_size, seed=seed),
        training_reader(store, config, seed=seed),
        config,
        epoch_size=epoch_size,
        evaluate=evaluator(model, backbone, store, labels, config, seed=seed),
        checkpointer=checkpointer,
        log=log,
        log_every=log_every,
        stage=stage,
        accelerator=accelerator,
        quiet=quiet,
    )
    return Trained(model, config, seed, fitted, ParameterCount.of(model, backbone))


def train_erm(
    backbone: Backbone,
    store: ImageStore,
    labels: Labels,
    config: DebiasConfig,
    *,
    seed: int,
    stage: str = "erm",
    checkpointer: Checkpointer | None = None,
    log: MetricsLog | None = None,
    accelerator: Accelerator | None = None,
    quiet: bool = False,
) -> Trained:
    """The control: same backbone, prompts and budget; natural sampling, plain cross-entropy."""
    plain = replace(config, use_pseudo=False, dual_branch=False, use_xrm=False)
    return train_d2cp(
        backbone,
        store,
        labels,
        plain,
        seed=seed,
        stage=stage,
        checkpointer=checkpointer,
        log=log,
        accelerator=accelerator,
        quiet=quiet,
    )


def new_model(
    backbone: Backbone, labels: Labels, config: DebiasConfig, *, seed: int
) -> DualBranch | PromptClassifier:
    if config.dual_branch:
        return DualBranch.new(backbone, labels.classes, labels.attributes, config, seed=seed)
    return PromptClassifier.new(backbone, labels.classes, config, seed=seed)


def training_order(labels: Labels, config: DebiasConfig, draws: int, *, seed: int) -> Order:
    """epoch -> rows: weighted by the groups of the config, or natural where it has none."""
    groups = training_groups(labels, config)

    def order(epoch: int) -> Rows:
        if groups is None:
            drawn = natural_order(len(labels.train), draws, seed=seed, epoch=epoch)
        else:
            drawn = weighted_order(
                groups[labels.train], config.alpha, draws, seed=seed, epoch=epoch
            )
        return labels.train[drawn]

    return order


def evaluator(
    model: DualBranch | PromptClassifier,
    backbone: Backbone,
    store: ImageStore,
    labels: Labels,
    config: DebiasConfig,
    *,
    seed: int,
) -> Evaluate | None:
    """Worst-group accuracy on validation by the selection rule; ties go to the mean over groups."""
    if not len(labels.val):
        return None
    groups = selection_groups(labels, config.selection)
    rows = evaluation_rows(labels, groups, config.evaluate_per_group, seed=seed)

    def evaluate() -> tuple[Score, Mapping[str, float]]:
        classifier = model.classifier() if isinstance(model, DualBranch) else model
        logits = predict_logits(classifier, backbone, store, rows, image_size=config.image_size)
        right = logits.argmax(1) == labels.y[rows]
        accuracies = [right[groups[rows] == g].mean() for g in np.unique(groups[rows])]
        worst, mean = float(min(accuracies)), float(np.mean(accuracies))
        figures = {"worst_group": worst, "group_mean": mean, "mean": float(right.mean())}
        return (worst, mean), figures

    return evaluate
