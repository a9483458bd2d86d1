"""Gradients that were taken before are those of the plain graph."""

from __future__ import annotations

import torch
from torch import Tensor

from d2cp.core.gradients import taken_now


def test_losses_whose_gradients_were_taken_add_up_as_if_they_were_not():
    shared, own, idle = (torch.randn(4).requires_grad_() for _ in range(3))
    parameters = [shared, own, idle]

    def losses() -> list[Tensor]:
        return [(shared**3).sum(), (shared * own).square().sum()]

    expected = torch.autograd.grad(2 * sum(losses()), [shared, own])
    taken = [taken_now(loss, parameters) for loss in losses()]
    assert torch.equal(torch.stack(taken), torch.stack(losses()))
    (2 * sum(taken)).backward()
    torch.testing.assert_close([shared.grad, own.grad], list(expected))
    assert idle.grad is None
