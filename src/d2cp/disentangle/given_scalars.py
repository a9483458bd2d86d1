"""Scalars that were made elsewhere, such as a scan's findings: the model learns to draw them."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn


class GivenScalars(nn.Module):
    """[N, G] for the rows of the table; the model keeps them among its weights."""

    values: Tensor

    def __init__(self, rows: int, count: int) -> None:
        super().__init__()
        self.register_buffer("values", torch.zeros(rows, count))

    @classmethod
    def of(cls, values: NDArray[np.float32]) -> GivenScalars:
        made = cls(*values.shape)
        made.values.copy_(torch.from_numpy(values))
        return made

    @property
    def count(self) -> int:
        return self.values.shape[1]

    def forward(self, rows: NDArray[np.int64]) -> Tensor:
        return self.values[torch.from_numpy(rows).to(self.values.device)]
