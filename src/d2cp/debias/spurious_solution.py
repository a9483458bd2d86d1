"""W^a on frozen features, solved instead of trained beside W^y.

On given features the spurious head is a convex problem, so it need not be a moving target: it is
solved to its minimum before the class branch takes its first step, and P0^a is then exact and
fixed. Each head reads what those before it leave. One more is kept only while images that it was
not fitted on can still be read: a direction that separates the training images by accident would
cost the class branch something and free it of nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from d2cp.core.arrays import Ints
from d2cp.core.rng import permutation
from d2cp.debias.projection import null_space_projection, row_space
from d2cp.debias.sampler import sample_weights
from d2cp.debias.solved_head import solve_head

FOLDS = 4
SOLVED_DECAY = 3.0  # where the configuration has none of its own
READABLE = 0.3  # share of the way from chance to certainty that a kept head must go


@dataclass(frozen=True)
class SpuriousSolution:
    """`weight` [heads * values, D] and `bias` of the kept heads, zero for the others; `read` is the
    held-out accuracy, mean over groups, of every head that was tried."""

    weight: Tensor
    bias: Tensor
    read: tuple[float, ...]
    kept: int


class _Sequence:
    """Heads one after another on some of the rows, groups in equal shares, so that the class
    cannot stand in for the attribute."""

    def __init__(self, x: Tensor, a: Tensor, groups: Ints, values: int, decay: float) -> None:
        self._x, self._a, self._weights = x, a, sample_weights(groups, 1.0)
        self._values, self._decay = values, decay
        self.heads: list[Tensor] = []

    def without(self, x: Tensor) -> Tensor:
        """What the heads so far leave of x."""
        if not self.heads:
            return x
        return null_space_projection(x, row_space(torch.cat(self.heads)[:, :-1])).to(x.dtype)

    def add(self) -> None:
        seen = self.without(self._x)
        self.heads.append(solve_head(seen, self._a, self._weights, self._values, self._decay))

    def read_next(self, x: Tensor) -> Tensor:
        """Answers for rows x of a head that is solved and added."""
        seen = self.without(x)
        self.add()
        head = self.heads[-1]
        return (seen @ head[:, :-1].T + head[:, -1]).argmax(1)


def solve_spurious(
    x: Tensor, a: Ints, groups: Ints, *, values: int, heads: int, decay: float, seed: int
) -> SpuriousSolution:
    """At most `heads` heads on features [N, D]; none where the attribute cannot be read."""
    x, labels = x.double(), torch.from_numpy(a)
    fold = permutation(seed, "debias/spurious-folds", 0, len(a)) % FOLDS
    parts = [np.flatnonzero(fold == k) for k in range(FOLDS)]
    others = [np.flatnonzero(fold != k) for k in range(FOLDS)]
    whole = _Sequence(x, labels, groups, values, decay)
    held_out = [_Sequence(x[rest], labels[rest], groups[rest], values, decay) for rest in others]
    least = 1 / values + READABLE * (1 - 1 / values)
    read = []
    while len(whole.heads) < heads:
        right = np.zeros(len(a), dtype=bool)
        for part, sequence in zip(parts, held_out, strict=True):
            right[part] = (sequence.read_next(x[part]) == labels[part]).numpy()
        read.append(float(np.mean([right[groups == g].mean() for g in np.unique(groups)])))
        if read[-1] < least:
            break
        whole.add()
    found = torch.zeros(heads * values, x.shape[1] + 1)
    if whole.heads:
        found[: len(whole.heads) * values] = torch.cat(whole.heads).float()
    return SpuriousSolution(found[:, :-1], found[:, -1], tuple(read), len(whole.heads))
