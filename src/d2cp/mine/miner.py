"""Mining from end to end: search, freeze the rule, judge the finding."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from d2cp.config.mine import MineConfig
from d2cp.core.arrays import Floats, Ints
from d2cp.errors import ConfigError, DataError
from d2cp.mine.evidence import gather
from d2cp.mine.mined import Mined, as_tokens
from d2cp.mine.rule import make_rule
from d2cp.mine.search import search
from d2cp.mine.verdict import judge


def mine(
    tokens: ArrayLike,
    y: ArrayLike,
    config: MineConfig,
    seed: int,
    *,
    scalars: ArrayLike | None = None,
) -> Mined:
    """Mine the spurious concepts of a training split: tokens [N, K, D], labels 0…C-1 [N].

    `scalars` [N, K] are needed only by `score = "signed_scalars"`. One thread of BLAS: the matrices
    are tall and thin, and more threads take twice as long.
    """
    with threadpool_limits(limits=1, user_api="blas"):
        return _mine(tokens, y, config, seed, scalars)


def _mine(
    tokens: ArrayLike, y: ArrayLike, config: MineConfig, seed: int, scalars: ArrayLike | None
) -> Mined:
    e, labels, classes = _checked(tokens, y, config)
    means = e.mean(axis=0)
    x = e - means if config.centre else e.copy()
    x[:, list(config.exclude)] = 0.0
    found = search(x, labels, classes, config, seed)
    warnings = []
    if found.top_m > found.asked_m:
        warnings.append(
            f"no concept was among the top {found.asked_m} of enough classes: "
            f"M was raised to {found.top_m}"
        )
    rule, notes = make_rule(e, labels, means, found, config, seed, scalars=scalars)
    evidence = gather(e, x, labels, rule, found, config, seed, scalars=scalars)
    return Mined(
        config=config,
        seed=seed,
        rule=rule,
        per_class=found.per_class,
        top_m=found.top_m,
        l2=found.l2,
        weight=found.classifier.weight,
        bias=found.classifier.bias,
        prototypes=found.prototypes,
        scores=found.scores,
        contrast=found.contrast,
        verdict=judge(evidence, found.concepts),
        warnings=(*warnings, *notes),
    )


def _checked(tokens: ArrayLike, y: ArrayLike, config: MineConfig) -> tuple[Floats, Ints, int]:
    e = as_tokens(tokens)
    labels = np.asarray(y).astype(np.int64)
    if labels.shape != (len(e),):
        raise DataError(
            f"{len(e)} images with labels of shape {list(labels.shape)}",
            expected="one label an image",
        )
    present = np.unique(labels)
    if len(present) < 2:
        raise DataError(
            f"a training split of {len(labels)} images in {len(present)} class",
            expected="at least two classes",
            remedy="a shortcut is a cue that tells classes apart: add images of another class",
        )
    wrong = [k for k in config.exclude if not 0 <= k < e.shape[1]]
    if wrong or len(set(config.exclude)) >= e.shape[1]:
        raise ConfigError(
            f"mine.exclude = {list(config.exclude)} with {e.shape[1]} concepts",
            expected=f"some of 0…{e.shape[1] - 1}, not all",
        )
    return e, labels, int(present[-1]) + 1
