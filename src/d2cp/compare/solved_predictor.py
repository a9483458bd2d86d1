"""A class head solved on frozen features, as a predictor of the comparison."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from d2cp.compare.contract import Predictor
from d2cp.compare.task import Task
from d2cp.compare.tiers import Space
from d2cp.core.arrays import Rows
from d2cp.debias.labels import Labels, with_validation
from d2cp.debias.loop import Evaluate
from d2cp.debias.solved_adapter import SolvedDualAdapter
from d2cp.debias.train import Trained, train_on_features
from d2cp.debias.training_tiers import Tier


@dataclass(frozen=True)
class SolvedPredictor:
    """`model` answers; `judged` was fitted on training images alone, and is what the selection rule
    sees of it."""

    model: nn.Module
    judged: nn.Module
    space: Space
    trainable: int

    def logits(self, rows: Rows) -> Tensor:
        return self._of(self.model, rows)

    def held_out(self, rows: Rows) -> Tensor:
        return self._of(self.judged, rows)

    def _of(self, model: nn.Module, rows: Rows) -> Tensor:
        with torch.no_grad():
            found: Tensor = model(self.space.frozen(rows))
        return found


def solved_predictor(task: Task, labels: Labels) -> Predictor:
    """The task's configuration solved on the training images and, with `debias.refit`, once more
    with the validation images. Nothing is trained step by step: no pass is counted."""
    every = task.space.frozen(np.arange(len(labels.y)))

    def solve(rows: Labels) -> Trained:
        return train_on_features(
            every, rows, task.config, seed=task.seed, backbone_parameters=1, evaluate_with=_nothing
        )

    judged = solve(labels)
    whole = solve(with_validation(labels)) if task.config.refit else judged
    if isinstance(whole.model, SolvedDualAdapter):
        task.notes.append(f"D2CP: {whole.model.directions} spurious directions removed")
    return SolvedPredictor(
        whole.classifier(), judged.classifier(), task.space, whole.parameters.trained
    )


def _nothing(tier: Tier) -> Evaluate:
    """The comparison's own rule looks at the predictor."""
    return lambda: ((0.0,), {})
