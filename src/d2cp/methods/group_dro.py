"""Group DRO (ICLR 20): group weights that grow with the group's loss; sees train groups.

Fidelity: update and loss as published, eta 0.01, groups drawn equally (alpha 1); the trained part
is prompts, not the whole network. Weights: `d2cp.debias.group_losses`.
"""

from __future__ import annotations

from d2cp.compare.contract import Param, Params, Predictor, Spec
from d2cp.compare.task import Task
from d2cp.compare.train_classifier import train_group_dro


class GroupDro:
    spec = Spec(
        name="group_dro",
        title="Group DRO",
        venue="ICLR 20",
        fidelity="as published, on prompts instead of the whole network",
        sees_train_groups=True,
        params={
            "eta": Param(default=0.01, low=1e-3, high=1e-1, log=True, published="0.01"),
            "alpha": Param(default=1.0, choices=(0.0, 0.5, 1.0), published="1 (equal groups)"),
        },
    )

    def fit(self, task: Task, params: Params) -> Predictor:
        return train_group_dro(
            task,
            task.groups,
            task.group_count,
            eta=float(params["eta"]),
            alpha=float(params["alpha"]),
            stage="group_dro",
            passes=task.budget,
        )
