"""PDE's schedule: balanced warm-up, additions at intervals, one drop of the learning rate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from d2cp.config.debias import DebiasConfig
from d2cp.debias.loop import Plan, learning_rate
from d2cp.methods.elrep import elastic_penalty
from d2cp.methods.pde import Pde, expanding, expansion_order, subset_size

GROUPS = np.repeat([0, 1, 3], [700, 40, 60])  # group 2 has no member


def test_warm_up_is_balanced_over_the_groups_that_exist():
    order, warm = expansion_order(GROUPS, seed=1)
    assert warm == 3 * 40
    assert np.bincount(GROUPS[order[:warm]], minlength=4).tolist() == [40, 40, 0, 40]
    assert sorted(order.tolist()) == list(range(800))


def test_size_by_step_as_published_for_waterbirds():
    """Start at epoch 140, +10 every 10 epochs."""

    def size(epoch: int) -> int:
        return subset_size(epoch, warm=224, start=140, interval=10, add=10, total=4795)

    assert [size(e) for e in (0, 139, 140, 149, 150, 199)] == [224, 224, 234, 234, 244, 284]
    assert subset_size(10**6, warm=224, start=140, interval=10, add=10, total=4795) == 4795


def test_order_and_rate_over_a_budget(make_task):
    task = make_task(groups=GROUPS, values=2, classes=2, budget=3200)
    task.config = replace(task.config, batch_size=16)
    order, changes = expanding(task, Pde.spec.values())
    positions = order(0)
    sequence, warm = expansion_order(task.groups, seed=task.seed)
    interval, start = 10, 14  # 200 steps: an interval is 10 of them, the start after 140
    assert changes["epoch_size"] == interval * 16 and changes["lr_every"] == start
    assert set(positions(start - 1)) <= set(sequence[:warm])
    assert set(positions(start)) <= set(sequence[: warm + 10])
    assert set(positions(start)) - set(sequence[:warm])
    config = replace(DebiasConfig(), **changes)
    plan = Plan(per_epoch=10, total=200, evaluate_every=200)
    rates = [learning_rate(config, 10 * e, plan) / config.lr for e in (0, 13, 14, 19)]
    assert np.allclose(rates, [1, 1, 0.01, 0.01])


def test_elastic_penalty_is_the_sum_over_singular_values():
    h = torch.randn(12, 5, generator=torch.Generator().manual_seed(0))
    sigma = torch.from_numpy(np.linalg.svd(h.numpy(), compute_uv=False))
    wanted = 1e-3 * sigma.sum() / 12 + 1e-4 * (sigma**2).sum() / 12
    torch.testing.assert_close(elastic_penalty(h, 1e-3, 1e-4), wanted)
