"""Optimisers and schedules by name, against the library's own schedulers."""

import itertools
import math

import pytest
import torch

from d2cp.config.debias import DebiasConfig
from d2cp.config.disentangle import DisentangleConfig
from d2cp.core.optimisers import OPTIMISERS, SCHEDULES, Moment, make_optimiser, scheduled
from d2cp.errors import ConfigError


@pytest.mark.parametrize("name", OPTIMISERS)
def test_every_optimiser_goes_downhill(name: str) -> None:
    x = torch.nn.Parameter(torch.tensor([3.0, -2.0]))
    optimiser = make_optimiser(name, [x], lr=0.1, weight_decay=0.0)
    for _ in range(3):
        optimiser.zero_grad()
        (x**2).sum().backward()
        optimiser.step()
    assert float((x.detach() ** 2).sum()) < 13


def test_step_is_the_library_s_step_schedule() -> None:
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.3)
    theirs = torch.optim.lr_scheduler.StepLR(optimiser, step_size=4, gamma=0.5)
    for epoch in range(12):
        at = Moment(step=7 * epoch, steps=84, epoch=epoch, every=4, gamma=0.5)
        assert scheduled("step", 0.3, at) == pytest.approx(theirs.get_last_lr()[0])
        optimiser.step()
        theirs.step()


def test_warm_up_then_half_a_cosine() -> None:
    rates = [scheduled("cosine", 2.0, Moment(step=s, steps=50, warmup=10)) for s in range(50)]
    assert rates[:10] == pytest.approx([0.2 * (s + 1) for s in range(10)])
    assert rates[30] == pytest.approx(1 + math.cos(math.pi / 2))
    assert all(a >= b for a, b in itertools.pairwise(rates[10:]))


@pytest.mark.parametrize("config", [DebiasConfig, DisentangleConfig])
@pytest.mark.parametrize(
    ("field", "known"), [("optimiser", OPTIMISERS), ("lr_schedule", SCHEDULES)]
)
def test_an_unknown_name_lists_the_known_ones(config: type, field: str, known: dict) -> None:
    with pytest.raises(ConfigError, match=", ".join(sorted(known))):
        config(**{field: "best"})
