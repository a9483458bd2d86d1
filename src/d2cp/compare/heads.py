"""Linear heads on frozen features: seconds, no checkpoint."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from d2cp.core.rng import numpy_generator

HeadLoss = Callable[[Tensor, Tensor], Tensor]  # logits of a batch, its positions -> loss


def fit_head(
    features: Tensor,
    outputs: int,
    loss: HeadLoss,
    *,
    seed: int,
    stage: str,
    steps: int = 500,
    batch_size: int = 256,
    lr: float = 0.1,
    weight_decay: float = 1e-4,
) -> nn.Linear:
    """A linear head by SGD on standardised features, given back as a head on the plain ones."""
    mean, std = features.mean(0), features.std(0).clamp(min=1e-6)
    x = (features - mean) / std
    head = nn.Linear(features.shape[1], outputs)
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    optimizer = torch.optim.SGD(head.parameters(), lr=lr, momentum=0.9, weight_decay=weight_decay)
    for step in range(steps):
        generator = numpy_generator(seed, stage, step)
        index = torch.from_numpy(generator.integers(len(x), size=min(batch_size, len(x))))
        optimizer.zero_grad()
        loss(head(x[index]), index).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    with torch.no_grad():
        head.weight.div_(std)
        head.bias.sub_(head.weight @ mean)
    return head


def fit_class_head(
    features: Tensor, labels: Tensor, classes: int, *, seed: int, stage: str, steps: int = 500
) -> nn.Linear:
    """Cross-entropy on labels."""

    def loss(logits: Tensor, index: Tensor) -> Tensor:
        return cross_entropy(logits, labels[index])

    return fit_head(features, classes, loss, seed=seed, stage=stage, steps=steps)
