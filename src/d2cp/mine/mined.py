"""What mining hands on: everything needed to label a new image and to judge the finding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from d2cp.config.mine import MineConfig
from d2cp.core.arrays import Floats, Ints
from d2cp.errors import DataError
from d2cp.mine.rule import Rule
from d2cp.mine.verdict import Verdict


@dataclass(frozen=True, kw_only=True)
class Mined:
    """The frozen outcome of CBCM on the training split. C classes, K concepts, D wide."""

    config: MineConfig
    seed: int
    rule: Rule
    per_class: tuple[tuple[int, ...], ...]
    """T_c, best first."""
    top_m: int
    """M as used: raised from the one asked for when T came out empty."""
    l2: float
    weight: Floats
    """W^A [C, K, D]."""
    bias: Floats
    prototypes: Floats
    """Ē_{c,k} [C, K, D], centred where `config.centre`."""
    scores: Floats
    """r_{c,k} [C, K]."""
    contrast: Floats
    """[K]."""
    verdict: Verdict
    warnings: tuple[str, ...]

    @property
    def concepts(self) -> tuple[int, ...]:
        """T, highest contrast first."""
        return self.rule.concepts

    @property
    def classes(self) -> int:
        return len(self.weight)

    @property
    def values(self) -> int:
        """How many values ã takes; with two classes and two values, 1 pushes towards class 1."""
        return self.rule.values

    @property
    def threshold(self) -> float | None:
        """The cut in the score; None where ã comes from clusters."""
        return None if self.rule.clusters is not None else self.rule.threshold

    @property
    def delta_w(self) -> Floats:
        """The score's direction of class 1 [K, D]; outside T it is 0 where A was refit."""
        result: Floats = self.rule.directions[1]
        return result

    @property
    def means(self) -> Floats:
        """Ē_k [K, D], the training means."""
        return self.rule.means


def apply(mined: Mined, tokens: ArrayLike, scalars: ArrayLike | None = None) -> tuple[Ints, Floats]:
    """(pseudo labels ã, score u) of tokens [N, K, D] under the rule frozen on train.

    `scalars` [N, K] are needed only by `score = "signed_scalars"`.
    """
    e = as_tokens(tokens, mined.means.shape)
    return mined.rule.labels(e, scalars), mined.rule.score(e, scalars)


def as_tokens(tokens: ArrayLike, shape: tuple[int, ...] | None = None) -> Floats:
    """Finite float64 [N, K, D], of the K and D the finding was made with."""
    e = np.asarray(tokens, dtype=np.float64)
    if e.ndim != 3 or (shape is not None and e.shape[1:] != shape):
        wanted = "[N, K, D]" if shape is None else f"[N, {shape[0]}, {shape[1]}]"
        raise DataError(f"concept tokens of shape {list(e.shape)}", expected=wanted)
    if not np.isfinite(e).all():
        raise DataError(
            "concept tokens that are not finite",
            expected="finite numbers",
            remedy="the concept model diverged: train it again with a lower learning rate",
        )
    return e
