"""Optimisers and learning-rate schedules by name. A loop asks here; a new one is one entry here.

No torch at import: the configuration checks its names against these tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from d2cp.errors import ConfigError

if TYPE_CHECKING:
    from torch.nn import Parameter
    from torch.optim import Optimizer

    Parameters = Iterable[Parameter] | Iterable[dict[str, Any]]  # plain, or in groups


@dataclass(frozen=True, kw_only=True)
class Moment:
    """Where a training is."""

    step: int
    steps: int
    epoch: int = 0
    warmup: int = 0  # steps of linear growth before the schedule begins
    every: int = 10  # epochs between two falls of `step`
    gamma: float = 0.1  # factor of a fall of `step`


def _sgd(parameters: Parameters, lr: float, weight_decay: float, momentum: float) -> Optimizer:
    from torch.optim import SGD

    return SGD(parameters, lr=lr, momentum=momentum, weight_decay=weight_decay)


def _adamw(parameters: Parameters, lr: float, weight_decay: float, momentum: float) -> Optimizer:
    """Its own two averages take the place of momentum."""
    from torch.optim import AdamW

    return AdamW(parameters, lr=lr, weight_decay=weight_decay, fused=True)


def _cosine(at: Moment) -> float:
    done = (at.step - at.warmup) / max(1, at.steps - at.warmup)
    return 0.5 * (1 + math.cos(math.pi * done))


OPTIMISERS = {"sgd": _sgd, "adamw": _adamw}
SCHEDULES: dict[str, Callable[[Moment], float]] = {
    "constant": lambda at: 1.0,
    "cosine": _cosine,
    "step": lambda at: at.gamma ** (at.epoch // at.every),
}


def make_optimiser(
    name: str,
    parameters: Parameters,
    *,
    lr: float,
    weight_decay: float,
    momentum: float = 0.9,
) -> Optimizer:
    return OPTIMISERS[name](parameters, lr, weight_decay, momentum)


def scheduled(name: str, lr: float, at: Moment) -> float:
    """The learning rate of a moment: linear warm-up, then the schedule of that name."""
    if at.step < at.warmup:
        return lr * (at.step + 1) / at.warmup
    return lr * SCHEDULES[name](at)


def require_known(name: str, known: Mapping[str, object], where: str) -> None:
    if name not in known:
        raise ConfigError(f"{where} = {name!r}", expected="one of " + ", ".join(sorted(known)))
