"""GroupDRO: weights of groups that grow with their loss, kept in float32 log space."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from d2cp.core.processes import global_sum


def group_losses(losses: Tensor, groups: Tensor, count: int) -> Tensor:
    """L_g: mean loss of each group [count] over the global batch; 0 where a group is absent."""
    ones = torch.ones_like(losses)
    sums = losses.new_zeros(count).index_add(0, groups, losses)
    sizes = losses.new_zeros(count).index_add(0, groups, ones)
    return global_sum(sums) / global_sum(sizes).clamp(min=1)


def updated_log_weights(log_q: Tensor, losses: Tensor, eta: float) -> Tensor:
    """q_g <- q_g exp(eta L_g) / sum (weight update), as log q. An absent group has L_g = 0."""
    log_q = log_q + eta * losses.detach().float()
    return log_q - torch.logsumexp(log_q, 0)


class GroupDRO(nn.Module):
    """One grouping of one branch: keeps q, returns sum_g q_g L_g with the updated q."""

    log_q: Tensor

    def __init__(self, groups: int, eta: float) -> None:
        super().__init__()
        self.groups, self.eta = groups, eta
        self.register_buffer("log_q", torch.full((groups,), -math.log(groups)))

    def forward(self, losses: Tensor, groups: Tensor) -> Tensor:
        per_group = group_losses(losses.float(), groups, self.groups)
        self.log_q.copy_(updated_log_weights(self.log_q, per_group, self.eta))
        return (self.log_q.exp() * per_group).sum()
