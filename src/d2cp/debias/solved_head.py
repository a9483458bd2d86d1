"""A linear head on given features, solved to its minimum: a convex problem has no learning rate,
no number of steps and no seed."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from d2cp.core.arrays import Floats

ITERATIONS = 100  # of L-BFGS; a decayed head needs some tens


def head_loss(head: Tensor, x: Tensor, labels: Tensor, shares: Tensor, decay: float) -> Tensor:
    """sum_i shares_i CE_i + decay/2 |W|^2, the bias in the last column: what gradient steps with a
    weight decay lower, too."""
    losses = cross_entropy(x @ head[:, :-1].T + head[:, -1], labels, reduction="none")
    return (shares * losses).sum() + decay / 2 * head[:, :-1].square().sum()


def minimise(loss: Callable[[Tensor], Tensor], start: Tensor) -> Tensor:
    """Where a convex `loss` is least, from `start` on."""
    found = start.clone().requires_grad_()
    optimiser = torch.optim.LBFGS(
        [found],
        max_iter=ITERATIONS,
        history_size=20,
        tolerance_grad=1e-6,
        line_search_fn="strong_wolfe",
    )

    def closure() -> Tensor:
        optimiser.zero_grad()
        value = loss(found)
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimiser.step(closure)  # type: ignore[no-untyped-call]
    return found.detach()


def solve_head(x: Tensor, labels: Tensor, weights: Floats, outputs: int, decay: float) -> Tensor:
    """[outputs, D + 1]: the minimum of `head_loss`, each image with its part of the weights."""
    shares = torch.from_numpy(weights / weights.sum())
    start = x.new_zeros(outputs, x.shape[1] + 1)
    return minimise(lambda head: head_loss(head, x, labels, shares, decay), start)
