"""ERM: cross-entropy, natural sampling.

Fidelity: as published; the trained part is the task's (prompts and head, or adapter and head).
"""

from __future__ import annotations

from d2cp.compare.contract import Params, Predictor, Spec
from d2cp.compare.task import ModelPredictor, Task, trainable
from d2cp.compare.train_classifier import train_classifier


class Erm:
    spec = Spec(
        name="erm",
        title="ERM",
        venue="-",
        fidelity="as published: cross-entropy, natural sampling",
    )

    def fit(self, task: Task, params: Params) -> Predictor:
        model = train_classifier(task, stage="erm")
        return ModelPredictor(model, task.space, trainable(model))
