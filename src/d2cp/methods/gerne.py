"""GERNE (ICCV 25), gradient extrapolation: from a biased and a less biased batch.

Biased batch: p_b(a | y) = alpha_ya, the training set's; less biased: alpha_ya + c (1/A - alpha_ya);
classes uniform in both; loss L_lb + beta (L_lb - L_b). beta = -1 is ERM (class-balanced), c = 1 and
beta = 0 is resampling. c (beta + 1) <= alpha_max / (alpha_max - 1/A) keeps the target a
distribution.

Fidelity: as published without attribute labels: a~ = whether a short ERM's confidence in the label
is above a threshold t. The grid's values of c, beta and t are ours; on prompts.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from d2cp.compare.contract import Param, Params, Predictor, Spec
from d2cp.compare.task import Batch, ModelPredictor, Order, Task, trainable
from d2cp.compare.tiers import Classifier
from d2cp.compare.train_classifier import split_budget, train_classifier
from d2cp.core.arrays import Floats, Rows
from d2cp.core.rng import numpy_generator
from d2cp.errors import ConfigError


def conditional(y: Rows, a: Rows, classes: int, values: int) -> Floats:
    """alpha_ya = p(a | y) [classes, attributes]; uniform for a class without samples."""
    counts = np.bincount(values * y + a, minlength=classes * values).astype(np.float64)
    table = counts.reshape(classes, values)
    total = table.sum(1, keepdims=True)
    shares: Floats = np.full((classes, values), 1 / values)
    np.divide(table, total, out=shares, where=total > 0)
    return shares


def less_biased(alpha: Floats, c: float) -> Floats:
    """alpha_ya + c (1/A - alpha_ya)."""
    return np.asarray(alpha + c * (1 / alpha.shape[1] - alpha))


def extrapolation_bound(alpha: Floats) -> float:
    """The largest c (beta + 1): alpha_max / (alpha_max - 1/A); infinite without bias."""
    largest, fair = float(alpha.max()), 1 / alpha.shape[1]
    return float("inf") if largest <= fair else largest / (largest - fair)


def composed_rows(
    shares: Floats, y: Rows, a: Rows, count: int, generator: np.random.Generator
) -> Rows:
    """`count` positions: classes uniform, a given y by `shares`, members uniform. The share of a
    cell without members goes to the other cells of its class."""
    classes, values = shares.shape
    cells = values * y + a
    sizes = np.bincount(cells, minlength=classes * values).reshape(classes, values)
    weight = np.where(sizes > 0, shares, 0.0)
    total = weight.sum(1, keepdims=True)
    weight = np.where(total > 0, weight / np.maximum(total, 1e-12), 0.0)
    present = sizes.sum(1) > 0
    weight = weight * (present / present.sum())[:, None]
    per_sample = (weight / np.maximum(sizes, 1)).flatten()[cells]
    return generator.choice(len(y), size=count, p=per_sample / per_sample.sum())


def paired_order(
    alpha: Floats, c: float, y: Rows, a: Rows, half: int, draws: int, *, seed: int
) -> Order:
    """Batches of 2 x half positions: the biased half first, then the less biased one."""

    def positions(epoch: int) -> Rows:
        generator = numpy_generator(seed, "gerne/batches", epoch)
        steps = draws // (2 * half)
        biased = composed_rows(alpha, y, a, steps * half, generator)
        better = composed_rows(less_biased(alpha, c), y, a, steps * half, generator)
        return np.concatenate([biased.reshape(steps, half), better.reshape(steps, half)], 1).ravel()

    return positions


def extrapolated_loss(losses: Tensor, beta: float) -> Tensor:
    """L_lb + beta (L_lb - L_b), the first half of `losses` being the biased batch."""
    half = len(losses) // 2
    biased, better = losses[:half].mean(), losses[half:].mean()
    return better + beta * (better - biased)


class Gerne:
    spec = Spec(
        name="gerne",
        title="GERNE",
        venue="ICCV 25",
        fidelity="as published without attribute labels (ERM confidence); grid ours; on prompts",
        params={
            "c": Param(default=0.9, choices=(0.5, 0.7, 0.9, 1.0)),
            "beta": Param(default=0.1, choices=(-0.5, 0.0, 0.1, 0.5, 1.0)),
            "threshold": Param(default=0.5, choices=(0.3, 0.5, 0.7, 0.9)),
            "identify": Param(default=0.2, choices=(0.05, 0.1, 0.2)),
        },
    )

    def fit(self, task: Task, params: Params) -> Predictor:
        first, rest = split_budget(task, float(params["identify"]))
        identifier = train_classifier(task, stage="identify", passes=first, select=False)
        sure = task.space.over(identifier, task.train).softmax(1)
        confidence = sure.gather(1, torch.from_numpy(task.y_train)[:, None])[:, 0].numpy()
        a: Rows = (confidence > float(params["threshold"])).astype(np.int64)
        alpha = conditional(task.y_train, a, task.classes, 2)
        c, beta = float(params["c"]), float(params["beta"])
        bound = extrapolation_bound(alpha)
        if c * (beta + 1) > bound:
            raise ConfigError(
                f"GERNE's c (beta + 1) = {c * (beta + 1):.3f}",
                expected=f"at most {bound:.3f}, the bound of this training set",
                remedy="lower c or beta",
            )
        task.notes.append(f"GERNE: {int((a == 0).sum())} of {len(a)} images below the threshold")
        half = max(1, min(task.config.batch_size, len(task.train)) // 2)

        def loss(model: Classifier, batch: Batch, y: Tensor) -> Tensor:
            each = cross_entropy(model(batch.images, batch.step), y, reduction="none")
            return extrapolated_loss(each, beta)

        model = train_classifier(
            task,
            loss,
            stage="gerne",
            passes=rest,
            order=lambda draws: paired_order(
                alpha, c, task.y_train, a, half, draws, seed=task.seed
            ),
            changes={"batch_size": 2 * half},
        )
        return ModelPredictor(model, task.space, trainable(model))
