"""An exponential moving average of trained weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


def decay_at(decay: float, step: int, *, warmup: bool = True) -> float:
    """Decay at step n: min(decay, (1+n)/(10+n)) with warm-up, so that a short run forgets its
    start."""
    return min(decay, (1 + step) / (10 + step)) if warmup else decay


class Average:
    """Of the trained weights whose names start with `prefix`; of none where `decay` is 0."""

    def __init__(
        self, module: nn.Module, decay: float, *, warmup: bool = True, prefix: str = ""
    ) -> None:
        self.decay, self.warmup = decay, warmup
        self.live = {
            name: p
            for name, p in module.named_parameters()
            if decay and p.requires_grad and name.startswith(prefix)
        }
        self.mean = {name: p.detach().clone() for name, p in self.live.items()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        if self.live:
            share = 1 - decay_at(self.decay, step, warmup=self.warmup)
            torch._foreach_lerp_(list(self.mean.values()), list(self.live.values()), share)

    @torch.no_grad()
    def install(self) -> None:
        """The averages take the place of the weights."""
        for name, parameter in self.live.items():
            parameter.copy_(self.mean[name])

    @contextmanager
    def installed(self) -> Iterator[None]:
        """The same for the length of a `with` block; then the weights are back."""
        before = {name: p.detach().clone() for name, p in self.live.items()}
        self.install()
        try:
            yield
        finally:
            with torch.no_grad():
                for name, parameter in self.live.items():
                    parameter.copy_(before[name])

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint must hold."""
        return {f"ema.{name}": value for name, value in self.mean.items()}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Take up what `tensors` gave."""
        for name, value in self.mean.items():
            value.copy_(tensors[f"ema.{name}"])
