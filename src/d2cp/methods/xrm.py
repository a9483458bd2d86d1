"""XRM (ICML 24): environments found by cross-risk minimisation, then GroupDRO on (y, e).

Fidelity: twins, flips and label-free model selection as published, on frozen features
(`d2cp.environments`); phase two is GroupDRO on prompts. Validation score is the comparison's rule,
where the original takes worst-group accuracy over inferred groups.
"""

from __future__ import annotations

from d2cp.compare.contract import Param, Params, Predictor, Spec
from d2cp.compare.task import Task
from d2cp.compare.train_classifier import train_group_dro
from d2cp.core.arrays import Rows
from d2cp.environments.cross_risk import discover_environments


def environment_bits(task: Task) -> Rows:
    """e of the training rows; 0 everywhere, with a note, where XRM finds one environment only."""
    found = discover_environments(
        task.space.frozen(task.train),
        task.y_train,
        task.space.frozen(task.val),
        task.y[task.val],
        task.classes,
        task.environments,
        task.seed,
        stage="methods/xrm",
    )
    share = 100 * float(found.train.mean())
    task.notes.append(found.reason or f"XRM: {share:.1f}% of training images have e = 1")
    return found.train


class Xrm:
    spec = Spec(
        name="xrm",
        title="XRM",
        venue="ICML 24",
        fidelity="as published on frozen features; then GroupDRO on prompts",
        needs=frozenset({"prompts", "features"}),
        params={
            "eta": Param(default=0.01, low=1e-3, high=1e-1, log=True, published="0.01, Group DRO")
        },
    )

    def fit(self, task: Task, params: Params) -> Predictor:
        groups = 2 * task.y_train + environment_bits(task)
        return train_group_dro(
            task,
            groups,
            2 * task.classes,
            eta=float(params["eta"]),
            alpha=1.0,
            stage="xrm",
            passes=task.budget,
        )
