"""Means over windows, from running sums: their size costs nothing, where pooling grows with it."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def window_means(x: Tensor, size: int, stride: int = 1) -> Tensor:
    """Over every window of `size` × `size` of the last two axes, at every `stride`-th place. The
    sums are double: a small window is the difference of large ones."""
    sums = F.pad(x.double().cumsum(-1).cumsum(-2), (1, 0, 1, 0))
    rows = sums[..., size::stride, :] - sums[..., :-size:stride, :]
    found = rows[..., size::stride] - rows[..., :-size:stride]
    return (found / size**2).to(x.dtype)
