"""Group DRO through the contract, against a training written out literally."""

from __future__ import annotations

import math

import numpy as np
import torch

from d2cp.core.rng import numpy_generator
from d2cp.debias.sampler import sample_weights
from d2cp.methods.group_dro import GroupDro


def test_group_dro_equals_a_literal_training(make_task):
    groups = np.random.default_rng(1).choice(4, p=[0.6, 0.1, 0.1, 0.2], size=200)
    task = make_task(groups=groups, values=2, classes=2, budget=6 * 32, select=None)
    found = GroupDro().fit(task, {"eta": 0.5, "alpha": 1.0})

    model = task.classifier()
    x, y = task.space.read_plain(task.train), torch.from_numpy(task.y_train)
    g = task.groups
    weights = sample_weights(g, 1.0)
    q = [0.25] * 4
    velocity = [torch.zeros_like(p) for p in model.parameters()]
    order: list[int] = []
    for epoch in range(20):  # the preset's epochs: here of one step each
        generator = numpy_generator(task.seed, "debias/sampler", epoch)
        order += generator.choice(len(g), size=32, p=weights / weights.sum()).tolist()
    for step in range(6):
        batch = order[32 * step : 32 * (step + 1)]
        losses = {k: [] for k in range(4)}
        for i in batch:
            logits = model(x[i : i + 1])[0]
            losses[int(g[i])].append(-logits.log_softmax(0)[y[i]])
        mean = [torch.stack(v).mean() if v else torch.tensor(0.0) for v in losses.values()]
        q = [w * math.exp(0.5 * m.item()) for w, m in zip(q, mean, strict=True)]
        q = [w / sum(q) for w in q]
        total = sum(w * m for w, m in zip(q, mean, strict=True))
        gradients = torch.autograd.grad(total, list(model.parameters()))
        norm = math.sqrt(sum(v.square().sum().item() for v in gradients))
        with torch.no_grad():
            for p, grad, v in zip(model.parameters(), gradients, velocity, strict=True):
                clipped = grad * min(1.0, task.config.clip / (norm + 1e-6))
                v.mul_(task.config.momentum).add_(clipped + task.config.weight_decay * p)
                p.sub_(task.config.lr * v)
    with torch.no_grad():
        wanted = model(task.space.read_plain(task.val))
    torch.testing.assert_close(found.logits(task.val), wanted, atol=2e-4, rtol=1e-3)
