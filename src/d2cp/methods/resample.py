"""Resample control: ERM whose batches are drawn by the (y, a~) sampler, and nothing else.

Answers "is D2CP's gain only resampling?". Fidelity: ours; groups are the mined pseudo groups, so no
true attribute is seen.
"""

from __future__ import annotations

from d2cp.compare.contract import PRESET, Param, Params, Predictor, Spec
from d2cp.compare.task import ModelPredictor, Task, trainable
from d2cp.compare.train_classifier import train_classifier


class Resample:
    spec = Spec(
        name="resample",
        title="Resample control",
        venue="-",
        fidelity="ours: ERM with D2CP's (y, pseudo attribute) sampler only",
        needs=frozenset({"prompts", "pseudo"}),
        params={"alpha": Param(default=PRESET, low=0.8, high=2.0, published="1.2 to 1.8, D2CP")},
    )

    def fit(self, task: Task, params: Params) -> Predictor:
        groups = task.pseudo.groups(task)
        given = params["alpha"]
        alpha = task.config.alpha if given == PRESET else float(given)
        model = train_classifier(
            task, stage="resample", order=lambda draws: task.weighted(groups, alpha, draws)
        )
        return ModelPredictor(model, task.space, trainable(model))
