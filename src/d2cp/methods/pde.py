"""PDE (NeurIPS 23), progressive data expansion; sees train groups.

Warm up on a group-balanced subset of min_g N_g per group; from a start on, add random unused
samples at fixed intervals, momentum kept, learning rate x 0.01.

Fidelity: the schedule as published, its epochs turned into shares of the budget, which is counted
in passes: start 140 and an addition every 10 epochs (Waterbirds) are 0.7 and 0.05 of 200 epochs, a
total of our choice. The trained part is prompts.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from d2cp.compare.contract import Param, Params, Predictor, Spec
from d2cp.compare.task import ModelPredictor, Order, Task, trainable
from d2cp.compare.train_classifier import Loss, mean_cross_entropy, train_classifier
from d2cp.core.arrays import Rows
from d2cp.core.rng import numpy_generator

PARAMS = {
    "start": Param(default=0.7, low=0.5, high=0.85, published="epoch 140, Waterbirds"),
    "interval": Param(default=0.05, low=0.02, high=0.1, published="10 epochs"),
    "add": Param(default=10, choices=(10, 50, 200), published="10 Waterbirds, 50 CelebA"),
    "drop": Param(default=0.01, choices=(0.01, 0.1, 1.0), published="0.01 at expansion"),
}


def expansion_order(groups: Rows, *, seed: int) -> tuple[Rows, int]:
    """All positions, the balanced subset first, and the size of that subset.

    The subset has min N_g of every group that has members; the rest follows at random.
    """
    shuffled = numpy_generator(seed, "pde/order").permutation(len(groups))
    present, sizes = np.unique(groups, return_counts=True)
    least = int(sizes.min())
    first = np.concatenate([shuffled[groups[shuffled] == g][:least] for g in present])
    rest = shuffled[~np.isin(shuffled, first)]
    return np.concatenate([first, rest]), len(first)


def subset_size(step: int, *, warm: int, start: int, interval: int, add: int, total: int) -> int:
    """How many samples are in use at a step: `warm`, then `add` more every `interval` steps."""
    if step < start:
        return warm
    return min(total, warm + add * (1 + (step - start) // interval))


def expanding(task: Task, params: Params) -> tuple[Callable[[int], Order], dict[str, object]]:
    """The order of an expanding training set, and what it changes in the configuration.

    An "epoch" of the loop is one interval, so that the order and the learning rate can change
    between intervals and nowhere else; the rate drops once, at `start` >= half of the budget.
    """
    sequence, warm = expansion_order(task.groups, seed=task.seed)
    size = min(task.config.batch_size, len(task.train))
    steps = max(1, task.budget // size)
    interval = max(1, round(float(params["interval"]) * steps))
    start = max(round(float(params["start"]) * steps / interval), (steps // interval + 2) // 2)

    def order(_draws: int) -> Order:
        def positions(epoch: int) -> Rows:
            used = subset_size(
                epoch,
                warm=warm,
                start=start,
                interval=1,
                add=int(params["add"]),
                total=len(sequence),
            )
            generator = numpy_generator(task.seed, "pde/epoch", epoch)
            needed = interval * size
            rounds = [generator.permutation(used) for _ in range(-(-needed // used))]
            return sequence[np.concatenate(rounds)[:needed]]

        return positions

    changes: dict[str, object] = {
        "epoch_size": interval * size,
        "lr_schedule": "step",
        "lr_every": start,
        "lr_gamma": float(params["drop"]),
    }
    return order, changes


def fit_pde(task: Task, params: Params, loss: Loss, stage: str) -> Predictor:
    order, changes = expanding(task, params)
    model = train_classifier(task, loss, stage=stage, order=order, changes=changes)
    return ModelPredictor(model, task.space, trainable(model))


class Pde:
    spec = Spec(
        name="pde",
        title="PDE",
        venue="NeurIPS 23",
        fidelity="schedule as published, its epochs turned into shares of the budget; on prompts",
        sees_train_groups=True,
        params=PARAMS,
    )

    def fit(self, task: Task, params: Params) -> Predictor:
        return fit_pde(task, params, mean_cross_entropy, "pde")
