"""JTT (ICML 21), just train twice: upsample what a short ERM gets wrong.

Fidelity: as published, on prompts. The length T of the first training is a share of the budget
(the published 60 of 300 epochs on Waterbirds and 1 of 50 on CelebA do not carry over: prompts over
a frozen network fit faster), lambda is 100 or 50 as published, both in the search space.
"""

from __future__ import annotations

import numpy as np

from d2cp.compare.contract import Param, Params, Predictor, Spec
from d2cp.compare.task import ModelPredictor, Task, trainable
from d2cp.compare.train_classifier import predicted, split_budget, train_classifier
from d2cp.core.arrays import Rows
from d2cp.core.rng import permutation


def upsampled(wrong: Rows, factor: int) -> Rows:
    """Positions with the wrong ones `factor` times: the second training's set."""
    repeats = np.where(wrong, factor, 1)
    return np.repeat(np.arange(len(wrong), dtype=np.int64), repeats)


def upsampled_order(wrong: Rows, factor: int, draws: int, *, seed: int, epoch: int) -> Rows:
    """Successive parts of permutations of the upsampled set."""
    pool = upsampled(wrong, factor)
    first = epoch * draws
    cycles = range(first // len(pool), (first + draws - 1) // len(pool) + 1)
    order = np.concatenate([permutation(seed, "jtt", cycle, len(pool)) for cycle in cycles])
    start = first - cycles[0] * len(pool)
    return np.asarray(pool[order[start : start + draws]])


class Jtt:
    spec = Spec(
        name="jtt",
        title="JTT",
        venue="ICML 21",
        fidelity="as published, on prompts; T re-tuned as a share of the budget",
        params={
            "identify": Param(
                default=0.2, choices=(0.05, 0.1, 0.2, 0.4), published="60 of 300, 1 of 50 epochs"
            ),
            "factor": Param(
                default=50, choices=(5, 20, 50, 100), published="100 Waterbirds, 50 CelebA"
            ),
        },
    )

    def fit(self, task: Task, params: Params) -> Predictor:
        first, rest = split_budget(task, float(params["identify"]))
        identifier = train_classifier(task, stage="identify", passes=first, select=False)
        wrong = predicted(task, identifier) != task.y_train
        task.notes.append(f"JTT's error set: {int(wrong.sum())} of {len(wrong)}")
        factor = int(params["factor"])
        model = train_classifier(
            task,
            stage="jtt",
            passes=rest,
            order=lambda draws: (
                lambda epoch: upsampled_order(wrong, factor, draws, seed=task.seed, epoch=epoch)
            ),
        )
        return ModelPredictor(model, task.space, trainable(model))
