"""DFR (ICLR 23), deep feature reweighting: ERM, then a last layer on balanced validation images.

The features of an ERM are kept. Group-balanced subsets of the validation images, min_g N_g of each
group, are drawn twenty times; an L1-regularised logistic regression is fitted on each, on features
standardised by the training images, and the weights are averaged. The strength C is the one of
seven whose worst group is best on held-out halves of the validation images.

Fidelity: penalty, strengths, draws and standardisation as published; L2 in the search is ours; the
features are those of prompts or adapter. Adapted: both halves of validation are held out in turn,
where the original holds out one. What the comparison's rule scores is cross-fitted the same way,
since the images that train the last layer cannot also judge it. The regression is on frozen
features: no pass is counted for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from d2cp.compare.contract import Param, Params, Predictor, Spec
from d2cp.compare.sparse_logistic import Penalty, fit_logistic
from d2cp.compare.task import ModelPredictor, Task, trainable
from d2cp.compare.tiers import Classifier
from d2cp.compare.train_classifier import train_classifier
from d2cp.core.arrays import Rows
from d2cp.core.rng import numpy_generator

STRENGTHS = (1.0, 0.7, 0.3, 0.1, 0.07, 0.03, 0.01)
TUNING_DRAWS = 1  # balanced subsets behind the choice of C, each half; as published


def balanced_subset(groups: Rows, generator: np.random.Generator) -> Rows:
    """Positions of min_g N_g members of every group that has any, in random order."""
    shuffled = generator.permutation(len(groups))
    present, sizes = np.unique(groups, return_counts=True)
    least = int(sizes.min())
    return np.concatenate([shuffled[groups[shuffled] == g][:least] for g in present])


def averaged_head(
    x: Tensor,
    y: Tensor,
    groups: Rows,
    classes: int,
    *,
    strength: float,
    penalty: Penalty,
    draws: int,
    generator: np.random.Generator,
) -> tuple[Tensor, Tensor]:
    """Mean (W, b) of the regressions on `draws` balanced subsets."""
    heads = []
    for _ in range(draws):
        part = torch.from_numpy(balanced_subset(groups, generator))
        heads.append(fit_logistic(x[part], y[part], classes, strength=strength, penalty=penalty))
    weights, offsets = zip(*heads, strict=True)
    return torch.stack(weights).mean(0), torch.stack(offsets).mean(0)


def halves(groups: Rows, generator: np.random.Generator) -> Rows:
    """0 or 1 for every position, each group cut in two as evenly as it goes."""
    half = np.zeros(len(groups), dtype=np.int64)
    for g in np.unique(groups):
        members = generator.permutation(np.flatnonzero(groups == g))
        half[members] = np.arange(len(members)) % 2
    return half


def worst_accuracy(logits: Tensor, y: Tensor, groups: Rows) -> float:
    right = (logits.argmax(1) == y).numpy()
    return min(float(right[groups == g].mean()) for g in np.unique(groups))


def cross_fitted(
    x: Tensor, y: Tensor, groups: Rows, classes: int, *, penalty: Penalty, seed: int
) -> tuple[float, Tensor]:
    """The best C, and logits of every image by a head that was fitted on the other half."""
    half = halves(groups, numpy_generator(seed, "dfr/halves"))
    best: tuple[float, float, Tensor] | None = None
    for strength in STRENGTHS:
        logits = x.new_zeros(len(x), classes)
        for side in (0, 1):
            fitted, held = half != side, half == side
            weight, bias = averaged_head(
                x[fitted],
                y[fitted],
                groups[fitted],
                classes,
                strength=strength,
                penalty=penalty,
                draws=TUNING_DRAWS,
                generator=numpy_generator(seed, "dfr/tune", side),
            )
            logits[held] = x[held] @ weight.T + bias
        reached = worst_accuracy(logits, y, groups)
        if best is None or reached > best[0]:
            best = reached, strength, logits
    assert best is not None
    return best[1], best[2]


class NewHead(nn.Module):
    """A classifier's features under another linear head."""

    def __init__(self, model: Classifier, weight: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("weight", weight.to(model.head.weight))
        self.register_buffer("bias", bias.to(model.head.weight))

    def forward(self, inputs: Tensor) -> Tensor:
        return linear(self.model.features(inputs), self.weight, self.bias)  # type: ignore[arg-type]


@dataclass(frozen=True)
class DfrPredictor(ModelPredictor):
    """With `crossed`, the cross-fitted logits of the validation rows, for the selection rule."""

    val: Rows
    crossed: Tensor

    def held_out(self, rows: Rows) -> Tensor:
        return self.crossed[torch.from_numpy(np.searchsorted(self.val, rows))]


class Dfr:
    spec = Spec(
        name="dfr",
        title="DFR",
        venue="ICLR 23",
        fidelity="last layer as published, on validation images; features of prompts or adapter",
        fits_on_val_groups=True,
        params={
            "penalty": Param(default="l1", choices=("l1", "l2"), published="l1"),
            "draws": Param(default=20, published="20"),
        },
    )

    def fit(self, task: Task, params: Params) -> Predictor:
        model = train_classifier(task, stage="erm")
        penalty = cast(Penalty, params["penalty"])
        train, val = (task.space.over(model.features, rows) for rows in (task.train, task.val))
        mean, std = train.mean(0), train.std(0).clamp(min=1e-6)
        x, y = (val - mean) / std, torch.from_numpy(task.y[task.val])
        groups = task.val_groups
        strength, held_out = cross_fitted(
            x, y, groups, task.classes, penalty=penalty, seed=task.seed
        )
        weight, bias = averaged_head(
            x,
            y,
            groups,
            task.classes,
            strength=strength,
            penalty=penalty,
            draws=int(params["draws"]),
            generator=numpy_generator(task.seed, "dfr/draws"),
        )
        least = int(np.unique(groups, return_counts=True)[1].min())
        task.notes.append(f"DFR: C = {strength}, {least} validation images of each group")
        scaled = weight / std
        whole = NewHead(model, scaled, bias - scaled @ mean)
        return DfrPredictor(whole, task.space, trainable(model), task.val, held_out)
