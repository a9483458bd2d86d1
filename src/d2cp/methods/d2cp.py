"""D2CP through the rivals' contract: the same loop, budget and selection as they have.

Fidelity: the project's own method, `d2cp.debias`: mined pseudo groups, two branches with cross
null-space projection, XRM's auxiliary groups. Each image goes through two branches, which counts as
two passes; where both heads are solved before the first step (`debias.prompt_start`) through one,
and every training image once more for that. On frozen features the spurious branch is a head that
is solved before the class branch trains, which costs no pass (`debias.spurious_fit`), and the
sampler draws groups in equal shares: the projection does what a larger alpha is for, and images
whose mined value is unsure have a part in either group (`debias.soft_values`). Where the
configuration solves the class head, too (`debias.class_fit`), no pass is taken at all, and with
`debias.refit` the head that is scored on test is fitted on training and validation images; the
selection rule sees one that was not. Images with a finding's cue exchanged (`debias.transplants`)
have no part in a comparison: all methods see the same images.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from torch import Tensor, nn

from d2cp.compare.contract import PRESET, Param, Params, Predictor, Spec
from d2cp.compare.solved_predictor import solved_predictor
from d2cp.compare.task import Logits, ModelPredictor, Task, trainable
from d2cp.compare.tiers import FeatureSpace, PromptSpace, feature_space
from d2cp.config.debias import READ_OUTS
from d2cp.core.arrays import Floats, Rows
from d2cp.debias.branch_logits import adapter_logits, prompt_logits
from d2cp.debias.dual_branch import DualBranch, PromptClassifier
from d2cp.debias.labels import Labels
from d2cp.debias.objective import D2CPObjective
from d2cp.debias.parameter_count import ParameterCount
from d2cp.debias.sampler import drawn_order
from d2cp.debias.soft_values import value_shares
from d2cp.debias.solved_adapter import SolvedDualAdapter
from d2cp.debias.solved_branch import SolvedDualBranch
from d2cp.debias.solved_start import install_start
from d2cp.debias.train import training_weights
from d2cp.debias.training_tiers import dual_adapter

BRANCHES = 2


def task_labels(task: Task) -> Labels:
    """The columns that stage 2 reads; test labels are not in a task, and stage 2 asks for none."""
    mined, soft = task.pseudo, task.config.soft_values and task.space.tier == "features"
    shares = None
    if soft:
        shares = value_shares(
            mined.score, mined.attribute, task.y, task.train, task.val, task.classes
        )
    return Labels(
        y=task.y,
        classes=task.classes,
        train=task.train,
        val=task.val,
        a=mined.attribute,
        values=mined.values,
        shares=shares,
        y_xrm=mined.y_xrm,
        a_xrm=mined.a_xrm,
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
        feature_params={
            "eta": Param(default=PRESET, low=1e-3, high=3e-2, log=True),  # where W^y is trained
            # where it is solved
            "class_decay": Param(default=PRESET, low=3e-3, high=1.0, log=True),
            "read_out": Param(default=PRESET, choices=READ_OUTS),
            "weight_xrm_y": Param(default=PRESET, low=0.0, high=1.0),
        },
    )

    def fit(self, task: Task, params: Params) -> Predictor:
        searched = {k: v for k, v in params.items() if v != PRESET}
        task.config = replace(
            task.config,
            **searched,  # type: ignore[arg-type]
            use_pseudo=True,
            dual_branch=True,
            use_xrm=True,
            tier=task.space.tier,
        )
        if isinstance(task.space, PromptSpace):
            return self._prompts(task, task.space)
        return self._features(task, feature_space(task.space))

    def _prompts(self, task: Task, space: PromptSpace) -> Predictor:
        labels, solved = task_labels(task), task.config.prompt_start == "solved"
        kind = SolvedDualBranch if solved else DualBranch
        model = kind.new(space.backbone, labels.classes, labels.values, task.config, seed=task.seed)
        model.to(space.device)
        cost, used = BRANCHES, 0
        if isinstance(model, SolvedDualBranch):
            cost, used = 1, self._start(task, space, labels, model)
        branches = prompt_logits(model, space.backbone, task.config, seed=task.seed)
        objective = D2CPObjective(model, branches, labels, task.config)

        def logits(rows: Rows) -> Tensor:
            classifier = model.classifier()
            return space.over(lambda images: classifier(space.backbone, images), rows)

        self._train(task, labels, objective, logits, cost, used)
        classifier = model.classifier()
        return ModelPredictor(_WithBackbone(classifier, space), space, trainable(model))

    def _start(
        self, task: Task, space: PromptSpace, labels: Labels, model: SolvedDualBranch
    ) -> int:
        """Solve both heads under untrained prompts; the passes that took."""
        branch = model.untrained().to(space.device)
        h = space.over(lambda images: branch.features(space.backbone, images), labels.train)
        kept = install_start(model, h, labels, task.config, seed=task.seed)
        task.notes.append(f"D2CP: {kept} spurious heads solved, their directions removed")
        task.passes += len(labels.train)
        return len(labels.train)

    def _features(self, task: Task, space: FeatureSpace) -> Predictor:
        labels = task_labels(task)
        if task.config.transplants:
            task.notes.append("D2CP: no exchanged images, all methods see the same")
        if task.config.solves_class:
            return solved_predictor(task, labels)
        every = space.read_plain(np.arange(len(labels.y)))
        model = dual_adapter(every, labels, task.config, seed=task.seed)
        model.to(space.device)
        objective = D2CPObjective(model, adapter_logits(model), labels, task.config)
        cost = BRANCHES
        if isinstance(model, SolvedDualAdapter):
            cost = 1
            task.notes.append(f"D2CP: {model.directions} spurious directions removed")
        self._train(
            task, labels, objective, lambda rows: space.over(model.classifier(), rows), cost
        )
        trained = ParameterCount.of(model, backbone=1).trained
        return ModelPredictor(model.classifier(), space, trained)

    def _train(
        self,
        task: Task,
        labels: Labels,
        objective: D2CPObjective,
        logits: Logits,
        cost: int = BRANCHES,
        used: int = 0,
    ) -> None:
        weights = training_weights(labels, task.config)
        assert weights is not None  # D2CP has groups
        task.fit(
            objective,
            objective,
            stage="d2cp",
            passes=task.left(used),
            order=lambda draws: partial(_order, weights, draws, task.seed),
            logits=logits,
            cost=cost,
            from_solution=bool(used),
        )


def _order(weights: Floats, draws: int, seed: int, epoch: int) -> Rows:
    return drawn_order(weights, draws, seed=seed, epoch=epoch)


class _WithBackbone(nn.Module):
    """A prompt classifier that knows its backbone."""

    def __init__(self, classifier: PromptClassifier, space: PromptSpace) -> None:
        super().__init__()
        self.classifier, self._frozen = classifier, (space.backbone,)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self._frozen[0], images)
        return logits
