"""Batch normalisation over the global batch: several processes normalise as one would.

torch's SyncBatchNorm does the same, on GPUs only.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from d2cp.core.processes import global_sum, process_count


class BatchNorm1d(nn.BatchNorm1d):
    """Of [B,C]."""

    def forward(self, input: Tensor) -> Tensor:
        return _normalised(self, input) if _is_shared(self) else super().forward(input)


class BatchNorm2d(nn.BatchNorm2d):
    """Of [B,C,H,W]."""

    def forward(self, input: Tensor) -> Tensor:
        return _normalised(self, input) if _is_shared(self) else super().forward(input)


def _is_shared(norm: nn.BatchNorm1d | nn.BatchNorm2d) -> bool:
    return norm.training and process_count() > 1


def _normalised(norm: nn.BatchNorm1d | nn.BatchNorm2d, input: Tensor) -> Tensor:
    x = input.to(torch.promote_types(input.dtype, torch.float32))
    others = [d for d in range(x.ndim) if d != 1]
    shape = (1, -1, *[1] * (x.ndim - 2))
    count = global_sum(torch.tensor(x.numel() / x.shape[1], device=x.device))
    mean = global_sum(x.sum(others)) / count
    centred = x - mean.view(shape)
    variance = global_sum(centred.square().sum(others)) / count
    if norm.running_mean is not None and norm.running_var is not None:
        assert norm.momentum is not None and norm.num_batches_tracked is not None
        unbiased = variance.detach() * count / (count - 1)
        norm.running_mean.lerp_(mean.detach(), norm.momentum)
        norm.running_var.lerp_(unbiased, norm.momentum)
        norm.num_batches_tracked.add_(1)
    out = centred * (variance + norm.eps).rsqrt().view(shape)
    if norm.affine:
        out = out * norm.weight.view(shape) + norm.bias.view(shape)
    return out.to(input.dtype)
