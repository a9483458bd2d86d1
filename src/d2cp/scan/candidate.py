"""A finding in the making: a weighted sum of lens scores, linear in the lenses' features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from d2cp.scan.batched import Doubles, Floats, Ints


@dataclass(frozen=True)
class Candidate:
    """`weight[lens]` [F, D, T] and `intercept` [F, T] are the fold models; `held_out` [N, T] are
    the scores of the rows learnt from, each by the model that did not see its label."""

    lens: str
    weight: dict[str, Floats]
    intercept: Floats
    held_out: Floats
    p_value: float
    plain: Floats | None = None
    """The scores before the finding was learnt again from a hidden value, where it was."""
    readers: tuple[str, ...] = ()
    """Lenses that read it as well as any by themselves, the plainest first, where that is known."""

    @property
    def leads(self) -> tuple[str, ...]:
        """Lenses that the finding may be named after."""
        return self.readers or (self.lens,)

    @property
    def lenses(self) -> tuple[str, ...]:
        return (self.lens, *(name for name in self.weight if name != self.lens))


def stack(parts: Sequence[Candidate], target: Floats, fold: Ints) -> Candidate:
    """Several readings of one thing as one score; a row's mix is fitted without its fold."""
    first = parts[0]
    if len(parts) == 1:
        return first
    held_out = np.zeros_like(first.held_out)
    intercept = np.zeros_like(first.intercept)
    shapes = {lens: w for part in parts for lens, w in part.weight.items()}
    weight = {lens: np.zeros_like(w) for lens, w in shapes.items()}
    for k in range(len(intercept)):
        train, held = fold != k, fold == k
        mix = mixture([p.held_out[train] for p in parts], target[train])
        for share, part in zip(mix, parts, strict=True):
            held_out[held] += share * part.held_out[held]
            intercept[k] += share * part.intercept[k]
            for lens, w in part.weight.items():
                weight[lens][k] += share * w[k]
    kept = {lens: w for lens, w in weight.items() if np.abs(w).max() > 0}
    return Candidate(first.lens, kept, intercept, held_out, min(p.p_value for p in parts))


def mixture(scores: Sequence[Floats], target: Floats) -> Doubles:
    """Non-negative least-squares weights of the scores for the target, the same for all columns,
    scaled so that the mix has unit spread."""
    columns = np.stack([(s - s.mean(0)).ravel() for s in scores], axis=1).astype(np.float64)
    weights, _ = nnls(columns, (target - target.mean(0)).ravel().astype(np.float64))
    if weights.sum() == 0:
        weights[0] = 1.0
    scaled: Doubles = weights / (float((columns @ weights).std()) + 1e-9)
    return scaled
