"""PPA (CVPR 25), project, probe, aggregate: on frozen features throughout.

Project: a biased head on P x with P = I - Z^T (Z Z^T)^-1 Z, Z the class proxies, class-logit-
adjusted. a^ = whether it is wrong, g^ = (y, a^). Probe: a linear group head W with cross-entropy on
h + tau ln beta^, beta^ the groups' shares. Aggregate: w_y = sum of W_g over the groups of y.

Fidelity: as published; adapted: without a text encoder the class means are the proxies. tau 1 is
ours. The projector is `d2cp.debias.projection`, never formed as a matrix.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from d2cp.compare.contract import Param, Params, Predictor, Spec
from d2cp.compare.heads import fit_head
from d2cp.compare.task import Task
from d2cp.compare.tiers import Space
from d2cp.compare.train_classifier import one_hot_mean
from d2cp.core.arrays import Rows
from d2cp.debias.projection import null_space_projection, row_space


def class_means(features: Tensor, y: Tensor, classes: int) -> Tensor:
    """Z [classes, D]; zero for a class without samples."""
    sums = features.new_zeros(classes, features.shape[1]).index_add(0, y, features)
    return sums / torch.bincount(y, minlength=classes).clamp(min=1)[:, None]


def adjusted_cross_entropy(logits: Tensor, target: Tensor, shares: Tensor, tau: float) -> Tensor:
    """Cross-entropy on h + tau ln beta^."""
    return cross_entropy(logits + tau * shares.clamp(min=1e-12).log(), target)


def aggregated(head: nn.Linear, classes: int) -> nn.Linear:
    """w_y = sum over g in y of W_g, groups ordered as g = (G/C) y + a^."""
    whole = nn.Linear(head.in_features, classes)
    with torch.no_grad():
        whole.weight.copy_(head.weight.view(classes, -1, head.in_features).sum(1))
        whole.bias.copy_(head.bias.view(classes, -1).sum(1))
    return whole


class FrozenPredictor:
    """A module on frozen features."""

    def __init__(self, space: Space, module: nn.Module, trained: int) -> None:
        self._space, self.module, self.trainable = space, module, trained

    def logits(self, rows: Rows) -> Tensor:
        with torch.no_grad():
            inputs = self._space.frozen(rows).to(next(self.module.parameters()).device)
            answer: Tensor = self.module(inputs).cpu()
        return answer


class Ppa:
    spec = Spec(
        name="ppa",
        title="PPA",
        venue="CVPR 25",
        fidelity="as published on frozen features; class means as proxies (no text encoder)",
        needs=frozenset({"features"}),
        params={"tau": Param(default=1.0, choices=(0.5, 1.0, 1.5))},
    )

    def fit(self, task: Task, params: Params) -> Predictor:
        x, y = task.space.frozen(task.train), torch.from_numpy(task.y_train)
        tau = float(params["tau"])
        batch = min(256, len(y))
        steps = max(1, task.budget // 2 // batch)
        basis = row_space(class_means(x, y, task.classes))
        projected = null_space_projection(x, basis)
        prior = one_hot_mean(y, task.classes)
        biased = fit_head(
            projected,
            task.classes,
            lambda logits, i: adjusted_cross_entropy(logits, y[i], prior, tau),
            seed=task.seed,
            stage="ppa/biased",
            steps=steps,
            batch_size=batch,
        )
        with torch.no_grad():
            wrong = (biased(projected).argmax(1) != y).long()
        task.notes.append(f"PPA: the biased head is wrong on {int(wrong.sum())} of {len(y)}")
        groups = 2 * y + wrong
        shares = one_hot_mean(groups, 2 * task.classes)
        head = fit_head(
            x,
            2 * task.classes,
            lambda logits, i: adjusted_cross_entropy(logits, groups[i], shares, tau),
            seed=task.seed,
            stage="ppa/groups",
            steps=steps,
            batch_size=batch,
        )
        task.passes += 2 * steps * batch
        whole = aggregated(head, task.classes)
        return FrozenPredictor(task.space, whole, sum(p.numel() for p in head.parameters()))
