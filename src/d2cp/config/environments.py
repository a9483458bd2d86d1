"""Settings of XRM. The ranges are the published ones; draws are uniform in the exponent."""

from __future__ import annotations

from dataclasses import dataclass

from d2cp.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class EnvironmentsConfig:
    settings: int = 8
    """Random settings that train together; the one with the largest flip rate is kept."""
    steps: int = 5001  # training steps of the twins
    lr_exponents: tuple[float, ...] = (-5.0, -3.0)
    """lr = 10^U(low, high)."""
    weight_decay_exponents: tuple[float, ...] = (-6.0, -3.0)
    """Weight decay = 10^U(low, high)."""
    batch_exponents: tuple[float, ...] = (5.0, 7.0)
    """Batch size = 2^U(low, high)."""
    momentum: float = 0.9  # of their SGD
    standardise: bool = False
    """Give every feature mean 0 and variance 1 first: off as published; on for features of
    another scale than those the learning rates were chosen for."""

    def __post_init__(self) -> None:
        for name in ("lr_exponents", "weight_decay_exponents", "batch_exponents"):
            value = getattr(self, name)
            if len(value) != 2 or value[0] > value[1]:
                raise ConfigError(
                    f"environments.{name} = {list(value)}", expected="two numbers, the lower first"
                )
        if not 0 <= self.momentum < 1:
            raise ConfigError(
                f"environments.momentum = {self.momentum}", expected="a number in [0, 1)"
            )
        for name in ("settings", "steps"):
            if getattr(self, name) < 1:
                raise ConfigError(
                    f"environments.{name} = {getattr(self, name)}", expected="at least 1"
                )
