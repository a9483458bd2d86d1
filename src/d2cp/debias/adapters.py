"""Branches over given features: h = x + U relu(V x) in the place of prompts."""

from __future__ import annotations

import copy
from typing import Self

import torch
from torch import Tensor, nn

from d2cp.config.debias import DebiasConfig
from d2cp.core.rng import torch_generator
from d2cp.debias.cross_heads import CrossHeads, init_head
from d2cp.debias.projection import null_space_projection


class Adapter(nn.Module):
    """h = x + U relu(V x), x the feature in the units of `standardise`. U starts at zero, so that
    training starts from the features as given."""

    mean: Tensor
    scale: Tensor

    def __init__(self, width: int, hidden: int, *, seed: int, name: str = "y") -> None:
        super().__init__()
        self.down, self.up = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))
        generator = torch_generator(seed, f"debias/adapter/{name}")
        with torch.no_grad():
            self.down.weight.copy_(torch.randn(hidden, width, generator=generator) / width**0.5)
            for part in (self.down.bias, self.up.weight, self.up.bias):
                part.zero_()

    def standardise(self, features: Tensor) -> None:
        """Mean 0 and deviation 1 over these: else the mean feature, which says nothing, takes part
        in every direction that a head learns, and in what the projection removes."""
        self.mean.copy_(features.mean(dim=0))
        self.scale.copy_(features.std(dim=0).clamp_min(1e-6))

    @property
    def idle(self) -> bool:
        """Whether it is still the identity."""
        return not (self.up.weight.any() or self.up.bias.any())

    def forward(self, features: Tensor, without: Tensor | None = None) -> Tensor:
        """h of features [B, D]; `without` is a basis [D, r] whose directions x loses first."""
        x = (features - self.mean) / self.scale
        if without is not None:
            x = null_space_projection(x, without)
        adapted: Tensor = x + self.up(torch.relu(self.down(x)))
        return adapted


def standardise_adapters(module: nn.Module, training: Tensor) -> None:
    """Every adapter of `module` in the units of the training images' features [N, D]; one image
    has no deviation, and leaves the units as they are."""
    if len(training) > 1:
        for part in module.modules():
            if isinstance(part, Adapter):
                part.standardise(training)


class AdapterClassifier(nn.Module):
    """One branch: an adapter and a linear head over frozen features."""

    def __init__(self, adapter: Adapter, head: nn.Linear) -> None:
        super().__init__()
        self.adapter = adapter
        self.head = head

    @classmethod
    def new(cls, width: int, classes: int, config: DebiasConfig, *, seed: int) -> AdapterClassifier:
        adapter = Adapter(width, config.hidden, seed=seed)
        return cls(adapter, init_head(classes, width, config, seed=seed, name="y"))

    def forward(self, features: Tensor) -> Tensor:
        logits: Tensor = self.head(self.class_inputs(features))
        return logits

    def class_inputs(self, features: Tensor) -> Tensor:
        """What the class head reads."""
        adapted: Tensor = self.adapter(features)
        return adapted


class DualAdapter(CrossHeads):
    """The dual-branch model over frozen features: two adapters, two heads, cross-projection."""

    def __init__(
        self,
        adapter_y: Adapter,
        adapter_a: Adapter,
        head_y: nn.Linear,
        head_a: nn.Linear,
        config: DebiasConfig,
    ) -> None:
        super().__init__(head_y, head_a, config)
        self.adapter_y = adapter_y
        self.adapter_a = adapter_a

    @classmethod
    def new(cls, width: int, classes: int, values: int, config: DebiasConfig, *, seed: int) -> Self:
        return cls(
            Adapter(width, config.hidden, seed=seed, name="y"),
            Adapter(width, config.hidden, seed=seed, name="a"),
            init_head(classes, width, config, seed=seed, name="y"),
            init_head(values * config.spurious_heads, width, config, seed=seed, name="a"),
            config,
        )

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        return self.cross_logits(self.adapter_y(features), self.adapter_a(features))

    def classifier(self) -> AdapterClassifier:
        """The target branch with P0^a folded into its head."""
        head = self.folded_target()
        return AdapterClassifier(copy.deepcopy(self.adapter_y), head)

    def shortcut(self) -> AdapterClassifier:
        """The spurious branch, folded: tells the suspected shortcut value of an image."""
        head = self.folded_spurious()
        return AdapterClassifier(copy.deepcopy(self.adapter_a), head)
