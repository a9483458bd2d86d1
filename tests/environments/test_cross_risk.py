import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from d2cp.config.environments import EnvironmentsConfig
from d2cp.core.rng import numpy_generator, permutation, torch_generator
from d2cp.environments.cross_risk import (
    class_balanced_slope,
    discover_environments,
    draw_owners,
    draw_settings,
    fit_twins,
    flip,
)
from d2cp.errors import ConfigError

QUICK = EnvironmentsConfig(
    settings=6, steps=400, lr_exponents=(-2.5, -1.0), batch_exponents=(4.0, 6.0)
)


def spurious(n=1200, classes=2, minority=0.1, seed=0):
    """An easy spurious feature that agrees with y but for the minority, and a hard true one."""
    generator = numpy_generator(seed, "test")
    y = generator.integers(classes, size=n)
    rare = generator.random(n) < minority
    a = np.where(rare, (y + 1 + generator.integers(classes - 1, size=n)) % classes, y)
    x = np.concatenate([4.0 * np.eye(classes)[a], 0.5 * np.eye(classes)[y]], axis=1)
    x = x + generator.normal(size=x.shape) * 0.7
    return torch.from_numpy(x).float(), y, rare


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4), st.integers(1, 12))
def test_slope_is_the_gradient_of_the_loss_written_out(seed, classes, size):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(1, size, classes, generator=generator, requires_grad=True)
    labels = torch.randint(classes, (1, size), generator=generator)
    active = torch.rand(1, size, generator=generator) < 0.8
    loss = torch.zeros(())
    for c in range(classes):
        members = [i for i in range(size) if active[0, i] and labels[0, i] == c]
        if members:
            each = [F.cross_entropy(logits[0, i], labels[0, i]) for i in members]
            loss = loss + sum(each) / len(each)
    expected = torch.zeros_like(logits)
    if loss.requires_grad:
        (expected,) = torch.autograd.grad(loss, logits)
    found = class_balanced_slope(logits.detach(), labels, active)
    assert torch.allclose(found, expected, atol=1e-6)


def literal_xrm(x, y, owner, lr, decay, batch, size, classes, config, seed, stage, which):
    """One setting, step by step, with two separate linear layers and torch's own SGD."""
    twins = [torch.nn.Linear(x.shape[1], classes) for _ in range(2)]
    for twin in twins:
        torch.nn.init.zeros_(twin.weight)
        torch.nn.init.zeros_(twin.bias)
    optimizer = torch.optim.SGD(
        [p for t in twins for p in t.parameters()], lr=lr, momentum=0.9, weight_decay=decay
    )
    labels = y.clone()
    for step in range(config.steps):
        epoch, position = divmod(step, len(y) // size)
        rows = permutation(seed, stage, epoch, len(y))[position * size : (position + 1) * size]
        draws = torch.rand(
            config.settings, size, generator=torch_generator(seed, f"{stage}/flip", step)
        )[which]
        rows = rows[:batch]
        held_in = torch.stack([twins[owner[i]](x[i]) for i in rows])
        held_out = torch.stack([twins[1 - owner[i]](x[i]) for i in rows]).detach()
        loss = sum(
            F.cross_entropy(held_in[labels[rows] == c], labels[rows][labels[rows] == c])
            for c in labels[rows].unique()
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for j, i in enumerate(rows):
            p = held_out[j].softmax(0)
            if draws[j] < (p.max() - 1 / classes) * classes / (classes - 1):
                labels[i] = p.argmax()
    return twins, labels


@pytest.mark.parametrize("classes", [2, 3])
def test_batched_settings_equal_one_literal_run_each(classes):
    config = EnvironmentsConfig(
        settings=3, steps=25, lr_exponents=(-2.0, -1.0), batch_exponents=(3.0, 4.5)
    )
    x, y, _ = spurious(60, classes)
    y = torch.from_numpy(y)
    drawn = draw_settings(config, 1, "t")
    owner = draw_owners(3, 60, 1, "t")
    twins, changed = fit_twins(x, y, owner, classes, drawn, config, 1, "t")
    size = int(drawn.batch.max())
    for s in range(3):
        lr, decay, batch = float(drawn.lr[s]), float(drawn.weight_decay[s]), int(drawn.batch[s])
        literal, labels = literal_xrm(
            x, y, owner[s], lr, decay, batch, size, classes, config, 1, "t", s
        )
        assert torch.equal(changed[s], labels)
        for t in range(2):
            assert torch.allclose(twins.weight[s, t], literal[t].weight, atol=1e-5)
            assert torch.allclose(twins.bias[s, t], literal[t].bias, atol=1e-5)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_minority_is_found(classes):
    x, y, rare = spurious(classes=classes)
    x_val, y_val, rare_val = spurious(600, classes, seed=1)
    found = discover_environments(x, y, x_val, y_val, classes, QUICK, seed=0)
    assert not found.degenerate and found.flip_rates[found.chosen] == max(found.flip_rates)
    assert found.train[rare].mean() > 0.9 and found.train[~rare].mean() < 0.15
    assert found.val[rare_val].mean() > 0.9


def test_same_seed_same_bits_and_another_seed_other_settings():
    x, y, _ = spurious(300)
    runs = [discover_environments(x, y, x, y, 2, QUICK, seed=s) for s in (0, 0)]
    assert np.array_equal(runs[0].train, runs[1].train)
    assert runs[0].flip_rates == runs[1].flip_rates
    first, other = draw_settings(QUICK, 0, "xrm"), draw_settings(QUICK, 1, "xrm")
    assert not torch.equal(first.lr, other.lr)


def test_trivially_easy_labels_are_degenerate_and_say_so():
    y = np.arange(200) % 2
    x = torch.from_numpy(np.eye(2)[y] * 10).float()
    found = discover_environments(x, y, x, y, 2, QUICK, seed=0)
    assert found.degenerate and "explain every image" in found.reason
    assert not found.train.any() and not found.val.any()
    assert set(found.flip_rates) == {0.0}


def test_flip_probability():
    sure = torch.tensor([[[20.0, 0.0]]])
    unsure = torch.zeros(1, 1, 2)
    one = torch.ones(1, 1, dtype=torch.int64)
    assert flip(one, sure, torch.tensor([[0.999]])).item() == 0
    assert flip(one, unsure, torch.tensor([[0.0]])).item() == 1


def test_ranges_are_checked():
    with pytest.raises(ConfigError, match="lower first"):
        EnvironmentsConfig(lr_exponents=(-1.0, -2.0))
