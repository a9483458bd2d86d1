"""Regularised multinomial logistic regression, by accelerated proximal gradient steps.

Penalties are scaled so that with two classes the answer is that of the usual binary form: the rows
of W come out as w/2 and -w/2, for which |W|_1 = |w|_1 and |W|^2 = |w|^2 / 2.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import one_hot

Penalty = Literal["l1", "l2"]


def objective(
    weight: Tensor, bias: Tensor, x: Tensor, y: Tensor, strength: float, penalty: Penalty
) -> Tensor:
    """sum_i CE_i + (|W|_1 or |W|^2) / strength: `strength` is C, large is little penalty."""
    loss = torch.nn.functional.cross_entropy(x @ weight.T + bias, y, reduction="sum")
    size = weight.abs().sum() if penalty == "l1" else weight.square().sum()
    return loss + size / strength


def fit_logistic(
    x: Tensor,
    y: Tensor,
    classes: int,
    *,
    strength: float,
    penalty: Penalty = "l1",
    steps: int = 1000,
    tolerance: float = 1e-3,
) -> tuple[Tensor, Tensor]:
    """(W [classes, D], b [classes]) that minimise `objective`; the offset is not penalised."""
    n = len(x)
    design = torch.cat([x, x.new_ones(n, 1)], dim=1)
    target = one_hot(y, classes).to(x)
    # softmax's Hessian is at most I/2, so this bounds the curvature of the mean loss
    step = 2 * n / torch.linalg.matrix_norm(design, ord=2).square().clamp(min=1e-12)
    shrink = float(step) / (strength * n)
    current = ahead = x.new_zeros(classes, x.shape[1] + 1)
    momentum = 1.0
    for _ in range(steps):
        gradient = ((design @ ahead.T).softmax(1) - target).T @ design / n
        moved = ahead - step * gradient
        weight = moved[:, :-1]
        if penalty == "l1":
            weight = weight.sign() * (weight.abs() - shrink).clamp(min=0)
        else:
            weight = weight / (1 + 2 * shrink)
        proposed = torch.cat([weight, moved[:, -1:]], dim=1)
        following = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        change = proposed - current
        if ((ahead - proposed) * change).sum() > 0:  # overshot: begin the acceleration again
            following, ahead = 1.0, proposed
        else:
            ahead = proposed + (momentum - 1) / following * change
        current, momentum = proposed, following
        if change.abs().max() < tolerance * current.abs().max().clamp(min=1e-3):
            break
    return current[:, :-1], current[:, -1]
