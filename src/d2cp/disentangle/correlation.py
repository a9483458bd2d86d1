"""Squared correlations of scalars within the global batch: the penalty on copies."""

from __future__ import annotations

import torch
from torch import Tensor

from d2cp.core.processes import global_rows


def squared_correlation(free: Tensor, guided: Tensor) -> Tensor:
    """Mean over pairs of the squared correlation, within the batch, of [B,F] with [B,G]."""
    a, b = (x - x.mean(0) for x in map(global_rows, (free, guided)))
    covariance = a.T @ b / len(a)
    return (covariance**2 / (a.var(0, False)[:, None] * b.var(0, False) + 1e-6)).mean()


def squared_correlation_within(scalars: Tensor) -> Tensor:
    """Mean over pairs of different columns of the squared correlation, within the batch [B,F]."""
    count = scalars.shape[1]
    if count < 2:
        return scalars.new_zeros(())
    whole = global_rows(scalars)
    centred = whole - whole.mean(0)
    variance = centred.var(0, False)
    covariance = centred.T @ centred / len(centred)
    squares = covariance**2 / (torch.outer(variance, variance) + 1e-6)
    return (squares.sum() - squares.diagonal().sum()) / (count * (count - 1))
