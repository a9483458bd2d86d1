"""Gradients of a loss taken at once, so that what it kept for them is free again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor


def taken_now(loss: Tensor, parameters: Iterable[Tensor]) -> Tensor:
    """The same loss, its gradients of `parameters` taken already and what it kept for them freed:
    a second loss can be computed in the same memory before both go backwards as one sum."""
    wanted = [p for p in parameters if p.requires_grad]
    with torch.autocast(loss.device.type, enabled=False):
        slopes = torch.autograd.grad(loss, wanted, allow_unused=True)
    taken: Tensor = _Taken.apply(loss.detach(), slopes, *wanted)  # type: ignore[no-untyped-call]
    return taken


class _Taken(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, loss: Tensor, slopes: Sequence[Tensor | None], *_: Tensor) -> Tensor:
        ctx.slopes = slopes
        return loss.clone()

    @staticmethod
    def backward(ctx: Any, *of_loss: Tensor) -> Any:
        return None, None, *(None if s is None else s * of_loss[0] for s in ctx.slopes)
