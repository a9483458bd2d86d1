"""What a method is: a declaration of what it may see and need, and a `fit` that gives a predictor.

No torch here, so that declarations can be listed quickly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from d2cp.config.strict import unknown_key
from d2cp.core.arrays import Rows
from d2cp.errors import ConfigError

if TYPE_CHECKING:
    from torch import Tensor

    from d2cp.compare.task import Task

Value = float | int | str
PRESET = "preset"  # the default of a parameter that the configuration holds
Params = Mapping[str, Value]
# features: frozen features; prompts: a trained network; images: pixels themselves (so there is no
# features tier); saliency: maps of what the network looks at; pseudo: mined pseudo attributes;
# text: class names through the backbone's own text encoder
Need = Literal["features", "prompts", "images", "saliency", "pseudo", "text"]
Tier = Literal["prompts", "features"]


@dataclass(frozen=True, kw_only=True)
class Param:
    """One hyper-parameter: its default and where a search may draw it from.

    `published` says which values come from the method's authors; empty means the values are ours.
    """

    default: Value
    choices: tuple[Value, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    published: str = ""

    def draw(self, generator: np.random.Generator) -> Value:
        if self.choices:
            return self.choices[int(generator.integers(len(self.choices)))]
        if self.high <= self.low:
            return self.default
        if self.log:
            return float(np.exp(generator.uniform(np.log(self.low), np.log(self.high))))
        return float(generator.uniform(self.low, self.high))


# What every method has: the preset's value unless its Spec declares another, and the range that a
# search draws from unless its Spec declares its own.
SHARED = {
    "lr": Param(default=PRESET, low=0.003, high=0.3, log=True),
    "weight_decay": Param(default=PRESET, low=1e-4, high=1e-1, log=True),
}


@dataclass(frozen=True, kw_only=True)
class Spec:
    """A method's declaration; `fidelity` is one line, the docstring of its file tells the rest."""

    name: str
    title: str
    venue: str
    fidelity: str
    sees_train_groups: bool = False
    fits_on_val_groups: bool = False  # trains on validation images and their groups
    needs: frozenset[Need] = frozenset({"prompts"})
    params: Mapping[str, Param] = field(default_factory=dict)
    feature_params: Mapping[str, Param] | None = None  # in place of `params` on frozen features

    def on(self, tier: Tier) -> Spec:
        """The declaration as it holds on a tier."""
        if tier != "features" or self.feature_params is None:
            return self
        return replace(self, params=self.feature_params, feature_params=None)

    @property
    def tiers(self) -> tuple[Tier, ...]:
        """Where the method can run: without pixels there is nothing to mask or crop."""
        return ("prompts",) if "images" in self.needs else ("prompts", "features")

    @property
    def space(self) -> dict[str, Param]:
        """All that a search may draw: the shared parameters and the method's own."""
        return {**SHARED, **self.params}

    def values(self, given: Params | None = None) -> dict[str, Value]:
        """The defaults with `given` laid over them; an unknown name is an error."""
        for name in given or {}:
            if name not in self.space:
                raise unknown_key(name, set(self.space), self.name)
        return {name: p.default for name, p in self.space.items()} | dict(given or {})

    def draw(self, generator: np.random.Generator) -> dict[str, Value]:
        return {name: p.draw(generator) for name, p in self.space.items()}

    def shared(self, values: Params) -> dict[str, float]:
        """Of these values, the shared ones that replace the configuration's."""
        return {n: float(values[n]) for n in SHARED if values.get(n, PRESET) != PRESET}

    @property
    def needs_groups(self) -> bool:
        """Whether true attributes of training or validation images are asked for."""
        return self.sees_train_groups or self.fits_on_val_groups

    def require_tier(self, tier: Tier) -> None:
        if tier not in self.tiers:
            raise ConfigError(
                f"{self.title} cannot run on frozen features: it works on the pixels themselves",
                expected=f"tier {' or '.join(self.tiers)}",
                remedy=f"use --tier prompts, or leave {self.name!r} out of --methods",
            )


class Predictor(Protocol):
    """What `fit` returns."""

    @property
    def trainable(self) -> int:
        """Parameters that were trained."""

    def logits(self, rows: Rows) -> Tensor: ...


def selection_logits(predictor: Predictor) -> Callable[[Rows], Tensor]:
    """What a rule may score on validation: a predictor that was trained on validation images gives
    cross-fitted logits, `held_out`, so that no image is scored by a model that saw it."""
    held_out: Callable[[Rows], Tensor] | None = getattr(predictor, "held_out", None)
    return held_out or predictor.logits


class Method(Protocol):
    """One rival. `params` is complete: `spec.values(...)`."""

    @property
    def spec(self) -> Spec: ...

    def fit(self, task: Task, params: Params) -> Predictor: ...
