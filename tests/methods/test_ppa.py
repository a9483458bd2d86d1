"""PPA: its projector, its proxies, its heads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from d2cp.backbone.text_tower import ClassText
from d2cp.debias.projection import null_space_projection, row_space
from d2cp.errors import DataError
from d2cp.methods.c_adapter import class_means
from d2cp.methods.ppa import Ppa, adjusted_cross_entropy, aggregated, inferred_groups

WIDTH = 12


def randn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def shortcut_data(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(x, y, against): axis 0 tells the class a little, axis 1 the shortcut, against on 5%."""
    rng = np.random.default_rng(seed)
    y = np.arange(2000) % 2
    against = rng.random(2000) < 0.05
    a = np.where(against, 1 - y, y)
    x = rng.normal(size=(2000, WIDTH))
    x[:, 0] += 2.0 * (2 * y - 1)
    x[:, 1] += 3.0 * (2 * a - 1)
    return torch.from_numpy(x).float(), torch.from_numpy(y), torch.from_numpy(against)


def name_proxies() -> torch.Tensor:
    """Proxies that know the class and not the shortcut, as text does."""
    z = torch.zeros(2, WIDTH)
    z[0, 0], z[1, 0], z[:, 2] = -1.0, 1.0, 0.3
    return z


def test_projector_is_the_one_of_stage_2():
    """I - Z^T (Z Z^T)^-1 Z, formed as published, against `null_space_projection`."""
    x, z = randn(50, 7), randn(3, 7, seed=1)
    literal = torch.eye(7) - z.T @ torch.linalg.inv(z @ z.T) @ z
    torch.testing.assert_close(x @ literal.T, null_space_projection(x, row_space(z)))
    torch.testing.assert_close(literal @ z.T, torch.zeros(7, 3), atol=1e-5, rtol=0)


def test_with_class_means_for_proxies_nothing_can_be_learnt_on_any_data():
    """Why PPA is not run without text: at W = 0 the gradient is 0, and the loss is convex."""
    for seed in range(3):
        x, y, _ = shortcut_data(seed)
        blind = null_space_projection(x, row_space(class_means(x, y, 2)))
        weight = torch.zeros(2, WIDTH, requires_grad=True)
        prior = torch.bincount(y) / len(y)
        adjusted_cross_entropy(blind @ weight.T, y, prior, 1.0).backward()
        assert weight.grad is not None and weight.grad.abs().max() < 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_with_proxies_free_of_the_shortcut_the_errors_are_the_minority(seed):
    x, y, against = shortcut_data(seed)
    groups = inferred_groups(x, y, name_proxies(), tau=1.0, steps=500, seed=seed)
    wrong = (groups % 2).bool()
    assert torch.equal(groups // 2, y)
    assert wrong[against].float().mean() > 0.95 and wrong[~against].float().mean() < 0.05


def test_heads_have_their_steps_whatever_the_budget_and_cost_no_pass(make_task):
    groups = np.random.default_rng(0).integers(4, size=400)
    answers = []
    for budget in (10, 10_000):
        task = make_task(groups=groups, values=2, classes=2, budget=budget)
        task = replace(task, text=ClassText(name_proxies(), torch.eye(WIDTH)))
        answers.append(Ppa().fit(task, Ppa.spec.values()).logits(task.val))
        assert task.passes == 0
    assert torch.equal(*answers)


def test_without_a_text_encoder_it_says_so(make_task):
    task = make_task(groups=np.arange(40) % 4, values=2, classes=2)
    with pytest.raises(DataError, match="no text encoder"):
        Ppa().fit(task, Ppa.spec.values())


def test_adjustment_and_aggregation():
    x, y = randn(6, 4), torch.tensor([0, 0, 2, 2, 2, 0])
    shares = torch.tensor([0.7, 0.2, 0.1])
    logits = randn(6, 3)
    found = adjusted_cross_entropy(logits, y, shares, 2.0)
    torch.testing.assert_close(found, cross_entropy(logits + 2 * shares.log(), y))
    head = nn.Linear(4, 6)
    torch.testing.assert_close(aggregated(head, 3)(x), head(x).view(6, 3, 2).sum(2))
