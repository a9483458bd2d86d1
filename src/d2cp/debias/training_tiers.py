"""What training needs of its tier: a model, logits of a batch, inputs, logits for selection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from d2cp.backbone import Backbone
from d2cp.config.debias import DebiasConfig
from d2cp.core.arrays import Rows
from d2cp.data.store import ImageStore
from d2cp.debias.adapters import (
    Adapter,
    AdapterClassifier,
    DualAdapter,
    standardise_adapters,
)
from d2cp.debias.branch_logits import adapter_logits, prompt_logits
from d2cp.debias.dual_branch import DualBranch, PromptClassifier
from d2cp.debias.labels import Labels
from d2cp.debias.logits import predict_features, predict_logits
from d2cp.debias.loop import Read
from d2cp.debias.objective import BranchLogits
from d2cp.debias.reading import training_reader
from d2cp.debias.solved_adapter import SolvedDualAdapter
from d2cp.debias.solved_branch import SolvedDualBranch
from d2cp.debias.solved_start import install_start
from d2cp.debias.spurious_solution import SOLVED_DECAY, SpuriousSolution, solve_spurious

DUAL = (DualBranch, DualAdapter)
Model = DualBranch | PromptClassifier | DualAdapter | AdapterClassifier


@dataclass(frozen=True)
class Tier:
    """A fresh model and how it meets its inputs."""

    model: Model
    branch_logits: BranchLogits
    read: Read
    class_logits: Callable[[Rows], NDArray[np.float32]]  # of the model as it is now


def prompt_tier(
    backbone: Backbone,
    store: ImageStore,
    labels: Labels,
    config: DebiasConfig,
    *,
    seed: int,
    device: torch.device,
) -> Tier:
    """Images under prompts, the paper's form; where it is asked for, with both heads solved
    before the first step."""
    model: DualBranch | PromptClassifier
    if config.dual_branch:
        kind = SolvedDualBranch if config.prompt_start == "solved" else DualBranch
        model = kind.new(backbone, labels.classes, labels.values, config, seed=seed)
    else:
        model = PromptClassifier.new(backbone, labels.classes, config, seed=seed)
    backbone.to(device)
    model.to(device)
    if isinstance(model, SolvedDualBranch):
        branch, size = model.untrained(), config.image_size
        features = predict_features(branch, backbone, store, labels.train, image_size=size)
        install_start(model, features, labels, config, seed=seed)

    def class_logits(rows: Rows) -> NDArray[np.float32]:
        classifier = model.classifier() if isinstance(model, DualBranch) else model
        return predict_logits(classifier, backbone, store, rows, image_size=config.image_size)

    logits = prompt_logits(model, backbone, config, seed=seed)
    return Tier(model, logits, training_reader(store, config, seed=seed), class_logits)


def dual_adapter(
    features: Tensor,
    labels: Labels,
    config: DebiasConfig,
    *,
    seed: int,
    solution: SpuriousSolution | None = None,
) -> DualAdapter:
    """Both branches over features [N, D] of every row, the spurious one solved where it is to be
    and `solution` is not given."""
    solved = config.spurious_fit == "solved"
    kind = SolvedDualAdapter if solved else DualAdapter
    model = kind.new(features.shape[1], labels.classes, labels.values, config, seed=seed)
    standardise_adapters(model, features[torch.from_numpy(labels.train)])
    if isinstance(model, SolvedDualAdapter):
        model.install(solution or spurious_solution(features, labels, config, seed=seed))
    return model


def spurious_solution(
    features: Tensor, labels: Labels, config: DebiasConfig, *, seed: int
) -> SpuriousSolution:
    """W^a of the training images; the same for all that differ in the class branch alone."""
    training = features[torch.from_numpy(labels.train)]
    units = Adapter(features.shape[1], 1, seed=seed)
    standardise_adapters(units, training)
    decay, groups = config.spurious_decay, labels.pseudo_groups()
    assert labels.a is not None
    with torch.no_grad():
        x = units(training)
    return solve_spurious(
        x,
        labels.a[labels.train],
        groups[labels.train],
        values=labels.values,
        heads=config.spurious_heads,
        decay=SOLVED_DECAY if decay is None else decay,
        seed=seed,
    )


def feature_tier(
    features: Tensor,
    labels: Labels,
    config: DebiasConfig,
    *,
    seed: int,
    device: torch.device,
    solution: SpuriousSolution | None = None,
) -> Tier:
    """Frozen features [N, D] of every row under adapters: an image costs microseconds."""
    width = features.shape[1]
    model: DualAdapter | AdapterClassifier
    if config.dual_branch:
        model = dual_adapter(features, labels, config, seed=seed, solution=solution)
    else:
        model = AdapterClassifier.new(width, labels.classes, config, seed=seed)
        standardise_adapters(model, features[torch.from_numpy(labels.train)])
    model.to(device)

    def read(rows: Rows, draws: Rows, epoch: int) -> Tensor:
        return features[torch.from_numpy(rows)]

    @torch.no_grad()
    def class_logits(rows: Rows) -> NDArray[np.float32]:
        classifier = model.classifier() if isinstance(model, DualAdapter) else model
        found = classifier(features[torch.from_numpy(rows)].to(device))
        return np.asarray(found.cpu().numpy(), dtype=np.float32)

    return Tier(model, adapter_logits(model), read, class_logits)
