"""Cross null-space projection: remove from a feature what the other head can read.

The projector P0(W) = I - B(W) B(W)^T is never formed: h - (h B) B^T costs D x C per image.
Everything runs in float32 whatever the precision of the features.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Rank = Literal["full", "difference"]


def _full_precision(like: Tensor) -> torch.autocast:
    """Autocast off: it would run the products in half precision whatever their inputs."""
    return torch.autocast(like.device.type, enabled=False)


def _rows(weight: Tensor, rank: Rank) -> Tensor:
    """The rows whose span is removed. Softmax sees differences of rows only, so `difference`
    leaves their common direction in place."""
    rows = weight.float()
    return rows if rank == "full" else rows - rows.mean(0, keepdim=True)


def row_space(weight: Tensor, rank: Rank = "full") -> Tensor:
    """B(W): [D, C], orthonormal columns spanning the rows of `weight` [C, D].

    Directions of singular value <= s_max * max(C, D) * eps are zero columns, so the shape does
    not depend on the rank and a zero head removes nothing. Detached.
    """
    rows = _rows(weight.detach(), rank)
    _, sigma, vh = torch.linalg.svd(rows, full_matrices=False)
    threshold = sigma.max() * max(rows.shape) * torch.finfo(torch.float32).eps
    basis: Tensor = (vh * (sigma > threshold).unsqueeze(1)).T
    return basis


def null_space_projection(features: Tensor, basis: Tensor) -> Tensor:
    """P0 h = h - (h B) B^T for features [..., D]."""
    with _full_precision(features):
        h = features.float()
        return (h - (h @ basis) @ basis.T).to(features.dtype)


def null_space_projection_with_grad(
    features: Tensor, weight: Tensor, rank: Rank = "full"
) -> Tensor:
    """P0(W) h, differentiable in W too: B B^T = W^T (W^+)^T, whose gradient needs no gap between
    singular values."""
    with _full_precision(features):
        rows = _rows(weight, rank)
        inverse = torch.linalg.pinv(rows, rtol=max(rows.shape) * torch.finfo(torch.float32).eps)
        h = features.float()
        projected: Tensor = h - (h @ rows.T) @ inverse.T
    return projected.to(features.dtype)


def fold(weight: Tensor, basis: Tensor) -> Tensor:
    """W P0: the head that gives W P0 h from the unprojected h."""
    return null_space_projection(weight, basis)
