"""W^y and W^a, each reading its branch after the other's row space was removed.

A softmax over two values learns w_1 = -w_0, so the row space of the paper's W^a is in effect one
direction. `spurious_heads` stacks several heads, each trained on what those before it leave: P0^a
then removes as many directions in which the attribute can be read, one after another.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from d2cp.config.debias import DebiasConfig
from d2cp.core.rng import torch_generator
from d2cp.debias.projection import (
    fold,
    null_space_projection,
    null_space_projection_with_grad,
    row_space,
)


def init_head(classes: int, width: int, config: DebiasConfig, *, seed: int, name: str) -> nn.Linear:
    head = nn.Linear(width, classes, bias=config.head_bias)
    generator = torch_generator(seed, f"debias/head/{name}")
    with torch.no_grad():
        head.weight.copy_(config.head_init * torch.randn(classes, width, generator=generator))
        if head.bias is not None:
            head.bias.zero_()
    return head


class CrossHeads(nn.Module):
    """The two heads of a dual-branch model, whatever its branches are."""

    def __init__(self, head_y: nn.Linear, head_a: nn.Linear, config: DebiasConfig) -> None:
        super().__init__()
        self.config = config
        self.head_y = head_y
        self.head_a = head_a

    @property
    def values(self) -> int:
        return self.head_a.out_features // self.config.spurious_heads

    def cross_logits(self, h_y: Tensor, h_a: Tensor) -> tuple[Tensor, Tensor]:
        """Logits W^y P0^a h^y [B, C] and W^a P0^y h^a [B, A], or [B, heads, A] of several heads."""
        return self.target_logits(h_y), self.spurious_logits(h_a)

    def target_logits(self, h_y: Tensor) -> Tensor:
        """W^y P0^a h^y."""
        logits: Tensor = self.head_y(self._without(h_y, self.head_a))
        return logits

    def spurious_logits(self, h_a: Tensor) -> Tensor:
        """W^a P0^y h^a."""
        features = self._without(h_a, self.head_y)
        if self.config.spurious_heads == 1:
            logits: Tensor = self.head_a(features)
            return logits
        return self._one_after_another(features)

    def _one_after_another(self, features: Tensor) -> Tensor:
        """Each head reads what the heads before it cannot: without that they would all learn the
        same direction, and P0^a would remove one."""
        size, rank = self.values, self.config.projection_rank
        logits = []
        for first in range(0, self.head_a.out_features, size):
            rows = slice(first, first + size)
            seen = features
            if first:
                seen = null_space_projection(features, row_space(self.head_a.weight[:first], rank))
            bias = None if self.head_a.bias is None else self.head_a.bias[rows]
            logits.append(linear(seen, self.head_a.weight[rows], bias))
        return torch.stack(logits, dim=1)

    def _without(self, features: Tensor, head: nn.Linear) -> Tensor:
        rank = self.config.projection_rank
        if self.config.projector_grad:
            return null_space_projection_with_grad(features, head.weight, rank)
        return null_space_projection(features, row_space(head.weight, rank))

    def folded_target(self) -> nn.Linear:
        """W^y P0^a: the same logits from the unprojected h^y."""
        return self._folded(self.head_y, self.head_a, self.head_y.out_features)

    def folded_spurious(self) -> nn.Linear:
        """W^a P0^y of the first spurious head, which reads all that there is."""
        return self._folded(self.head_a, self.head_y, self.values)

    @torch.no_grad()
    def _folded(self, head: nn.Linear, other: nn.Linear, outputs: int) -> nn.Linear:
        basis = row_space(other.weight, self.config.projection_rank)
        folded = nn.Linear(head.in_features, outputs, bias=head.bias is not None)
        folded.to(head.weight.device)
        folded.weight.copy_(fold(head.weight[:outputs], basis))
        if head.bias is not None:
            folded.bias.copy_(head.bias[:outputs])
        return folded
