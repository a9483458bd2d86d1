import pytest
import torch
from torch import nn

from d2cp.core.averaging import Average, decay_at


def test_decay_warms_up() -> None:
    assert decay_at(0.99, 0) == pytest.approx(0.1)
    assert decay_at(0.99, 10**6) == 0.99
    assert decay_at(0.99, 0, warmup=False) == 0.99


def test_weights_are_back_after_a_block_also_when_it_fails() -> None:
    module = nn.Linear(2, 1)
    average = Average(module, 0.5, warmup=False)
    with torch.no_grad():
        module.weight.add_(4.0)
    live = module.weight.detach().clone()
    average.update(0)
    with pytest.raises(RuntimeError), average.installed():
        torch.testing.assert_close(module.weight, live - 2.0)
        raise RuntimeError
    assert torch.equal(module.weight, live)


def test_a_decay_of_0_averages_nothing_and_a_prefix_narrows_it() -> None:
    module = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    assert Average(module, 0.0).tensors() == {}
    assert set(Average(module, 0.9, prefix="1.").tensors()) == {"ema.1.weight", "ema.1.bias"}
