"""W^y and W^a, each reading its branch after the other's row space was removed."""

from __future__ import annotations

import torch
from torch import Tensor, nn

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

    def cross_logits(self, h_y: Tensor, h_a: Tensor) -> tuple[Tensor, Tensor]:
        """Logits W^y P0^a h^y and W^a P0^y h^a."""
        return (
            self.head_y(self._without(h_y, self.head_a)),
            self.head_a(self._without(h_a, self.head_y)),
        )

    def _without(self, features: Tensor, head: nn.Linear) -> Tensor:
        rank = self.config.projection_rank
        if self.config.projector_grad:
            return null_space_projection_with_grad(features, head.weight, rank)
        return null_space_projection(features, row_space(head.weight, rank))

    @torch.no_grad()
    def folded_head(self, head: nn.Linear, other: nn.Linear) -> nn.Linear:
        """W P0(other): the same logits from the unprojected feature."""
        basis = row_space(other.weight, self.config.projection_rank)
        folded = nn.Linear(head.in_features, head.out_features, bias=head.bias is not None)
        folded.to(head.weight.device)
        folded.weight.copy_(fold(head.weight, basis))
        if head.bias is not None:
            folded.bias.copy_(head.bias)
        return folded
