"""D2CP through the rivals' contract: the same loop, budget and selection as they have.

Fidelity: the project's own method, `d2cp.debias`: mined pseudo groups, two branches with cross
null-space projection, XRM's auxiliary groups. Each image goes through two branches, which counts as
two passes. On frozen features the branches are two adapters.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from d2cp.backbone import Backbone
from d2cp.compare.contract import PRESET, Param, Params, Predictor, Rows, Spec
from d2cp.compare.task import Batch, Logits, ModelPredictor, Task, trainable
from d2cp.compare.tiers import Classifier, PromptSpace
from d2cp.debias.dual_branch import DualBranch, PromptClassifier
from d2cp.debias.labels import Labels
from d2cp.debias.objective import D2CPObjective
from d2cp.debias.projection import fold, null_space_projection, row_space

BRANCHES = 2


def task_labels(task: Task) -> Labels:
    """The columns that stage 2 reads; test labels are not in a task, and stage 2 asks for none."""
    mined = task.pseudo
    return Labels(
        y=np.maximum(task.y, 0),
        classes=task.classes,
        train=task.train,
        val=task.val,
        a=mined.attribute,
        attributes=mined.attributes,
        y_xrm=mined.y_xrm,
        a_xrm=mined.a_xrm,
    )


class AdapterObjective(D2CPObjective):
    """The objective of stage 2 over two adapters instead of two prompt branches."""

    def __init__(self, target: Classifier, spurious: Classifier, task: Task) -> None:
        labels, config = task_labels(task), task.config
        super().__init__(
            cast(PromptClassifier, nn.ModuleList([target, spurious])),
            cast(Backbone, None),  # no network under given features
            labels,
            config,
            seed=task.seed,
        )
        self._target, self._spurious = (target,), (spurious,)
        self._add("a", labels.pseudo_groups(), task.classes * labels.attributes, config.weight_a)
        self._add("xrm_a", labels.spurious_groups(), 2 * labels.attributes, config.weight_xrm_a)

    def _branch_losses(self, backbone: object, batch: Batch) -> dict[str, Tensor]:
        (target,), (spurious,) = self._target, self._spurious
        assert self._a is not None
        h_y, h_a = target.features(batch.images), spurious.features(batch.images)
        rank = self._config.projection_rank
        away_a = row_space(spurious.head.weight, rank)
        away_y = row_space(target.head.weight, rank)
        logits_y = target.head(null_space_projection(h_y, away_a))
        logits_a = spurious.head(null_space_projection(h_a, away_y))
        rows, device = batch.rows.cpu(), batch.rows.device
        return {
            "y": cross_entropy(logits_y, self._y[rows].to(device), reduction="none"),
            "a": cross_entropy(logits_a, self._a[rows].to(device), reduction="none"),
        }


class FoldedAdapter(nn.Module):
    """The target adapter read after the spurious head's row space was removed."""

    def __init__(self, target: Classifier, spurious: Classifier, task: Task) -> None:
        super().__init__()
        self.target, self.spurious = target, spurious
        self._rank = task.config.projection_rank

    def forward(self, inputs: Tensor) -> Tensor:
        head = self.target.head
        basis = row_space(self.spurious.head.weight, self._rank)
        return torch.nn.functional.linear(
            self.target.features(inputs), fold(head.weight, basis), head.bias
        )


class D2cp:
    spec = Spec(
        name="d2cp",
        title="D2CP",
        venue="-",
        fidelity="the project's own method; two branches count as two passes",
        needs=frozenset({"prompts", "features", "pseudo"}),
        params={
            "alpha": Param(
                default=PRESET, low=0.8, high=2.0, published="1.8 Waterbirds, 1.2 others"
            ),
            "eta": Param(default=PRESET, low=1e-3, high=1e-1, log=True),
        },
    )

    def fit(self, task: Task, params: Params) -> Predictor:
        searched = {k: float(v) for k, v in params.items() if v != PRESET}
        task.config = replace(
            task.config,
            **searched,  # type: ignore[arg-type]
            use_pseudo=True,
            dual_branch=True,
            use_xrm=True,
        )
        if isinstance(task.space, PromptSpace):
            return self._prompts(task, task.space)
        return self._features(task)

    def _prompts(self, task: Task, space: PromptSpace) -> Predictor:
        labels = task_labels(task)
        model = DualBranch.new(
            space.backbone, labels.classes, labels.attributes, task.config, seed=task.seed
        )
        model.to(space.device)
        objective = D2CPObjective(model, space.backbone, labels, task.config, seed=task.seed)

        def logits(rows: Rows) -> Tensor:
            classifier = model.classifier()
            return space.over(lambda images: classifier(space.backbone, images), rows)

        self._train(task, objective, logits)
        classifier = model.classifier()
        return ModelPredictor(_WithBackbone(classifier, space), space, trainable(model))

    def _features(self, task: Task) -> Predictor:
        target = task.space.classifier(task.classes, seed=task.seed)
        spurious = task.space.classifier(task.pseudo.attributes, seed=task.seed + 1)
        objective = AdapterObjective(target, spurious, task)
        folded = FoldedAdapter(target, spurious, task)
        self._train(task, objective, lambda rows: task.space.over(folded, rows))
        return ModelPredictor(folded, task.space, trainable(target, spurious))

    def _train(self, task: Task, objective: D2CPObjective, logits: Logits) -> None:
        groups = task.pseudo.groups(task)
        alpha = task.config.alpha
        task.fit(
            objective,
            objective,
            stage="d2cp",
            passes=task.budget,
            order=lambda draws: task.weighted(groups, alpha, draws),
            logits=logits,
            cost=BRANCHES,
        )


class _WithBackbone(nn.Module):
    """A prompt classifier that knows its backbone."""

    def __init__(self, classifier: PromptClassifier, space: PromptSpace) -> None:
        super().__init__()
        self.classifier, self._frozen = classifier, (space.backbone,)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self._frozen[0], images)
        return logits
