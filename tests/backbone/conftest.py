from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

from d2cp.backbone.families import family_of
from tiny_families import CONFIGS


def randomised(model: nn.Module) -> nn.Module:
    """Every parameter away from its start, so that a forgotten bias, scale or token shows."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.add_(noise, alpha=0.3 if parameter.ndim < 2 else 0.1)
    return model.eval()


@pytest.fixture(params=list(CONFIGS))
def config(request: pytest.FixtureRequest) -> Any:
    return CONFIGS[request.param]


@pytest.fixture
def library_model(config: Any) -> Iterator[nn.Module]:
    family = family_of(config.model_type, "test")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield randomised(family.model()(config, **family.options))
