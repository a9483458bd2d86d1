"""Resample control, solved: D2CP's class head and its images, without its branches.

Answers "is D2CP's gain only a solved head, and validation images?". A logistic regression on frozen
features, weighted (N / N_g)^alpha by the mined groups; with `debias.refit` it is fitted again on
training and validation images, as D2CP's is. No projection, no XRM, no soft values. Fidelity: ours.
"""

from __future__ import annotations

from dataclasses import replace

from d2cp.compare.contract import PRESET, Param, Params, Predictor, Spec
from d2cp.compare.solved_predictor import solved_predictor
from d2cp.compare.task import Task
from d2cp.methods.d2cp import task_labels


class ResampleSolved:
    spec = Spec(
        name="resample_solved",
        title="Resample control, solved",
        venue="-",
        fidelity="ours: logistic regression weighted by (y, pseudo attribute), refitted with val",
        needs=frozenset({"features", "pseudo"}),
        params={
            "alpha": Param(default=PRESET, low=0.8, high=2.0, published="1.2 to 1.8, D2CP"),
            "class_decay": Param(default=PRESET, low=3e-3, high=1.0, log=True),
        },
    )

    def fit(self, task: Task, params: Params) -> Predictor:
        own = {k: float(v) for k, v in params.items() if v != PRESET}
        task.config = replace(
            task.config,
            **own,  # type: ignore[arg-type]
            tier="features",
            class_fit="solved",
            use_pseudo=True,
            dual_branch=False,
            use_xrm=False,
            soft_values=False,
        )
        return solved_predictor(task, task_labels(task))
