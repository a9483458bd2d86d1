"""Trainings that several methods share: a classifier under some loss; GroupDRO on a grouping."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from d2cp.compare.task import Batch, Logits, ModelPredictor, Order, Task, trainable
from d2cp.compare.tiers import Classifier
from d2cp.core.arrays import Rows
from d2cp.debias.group_losses import GroupDRO
from d2cp.debias.loop import Read

Loss = Callable[[Classifier, Batch, Tensor], Tensor]  # model, batch, its labels


def mean_cross_entropy(model: Classifier, batch: Batch, y: Tensor) -> Tensor:
    return cross_entropy(model(batch.images, batch.step), y)


def train_classifier(
    task: Task,
    loss: Loss = mean_cross_entropy,
    *,
    stage: str,
    passes: int | None = None,
    order: Callable[[int], Order] | None = None,
    state: nn.Module | None = None,
    model: Classifier | None = None,
    select: bool | Logits = True,
    changes: Mapping[str, object] | None = None,
    read: Read | None = None,
    cost: float = 1,
) -> Classifier:
    """Train a (fresh) classifier of the task's space; `state` is what the loss keeps in checkpoints
    beside it. `select` may be other logits to score than the classifier's own; without it the last
    state is kept."""
    net = model or task.classifier()
    own: Logits = lambda rows: task.space.over(net, rows)  # noqa: E731
    parts = nn.ModuleList([net] if state is None else [net, state])
    task.fit(
        parts,
        lambda batch: (loss(net, batch, task.labels(batch.rows)), {}),
        stage=stage,
        passes=task.budget if passes is None else passes,
        order=order,
        logits=own if select is True else select or None,
        changes=changes,
        read=read,
        cost=cost,
    )
    return net


def predicted(task: Task, model: Classifier) -> Rows:
    """The class that `model` gives each training row."""
    answers: Rows = task.space.over(model, task.train).argmax(1).numpy()
    return answers


def train_group_dro(
    task: Task, groups: Rows, count: int, *, eta: float, alpha: float, stage: str, passes: int
) -> ModelPredictor:
    """GroupDRO on any grouping of the training rows, drawn with weights (N / N_g)^alpha."""
    of_row = task.lookup(groups)
    dro = GroupDRO(count, eta)

    def loss(model: Classifier, batch: Batch, y: Tensor) -> Tensor:
        losses = cross_entropy(model(batch.images, batch.step), y, reduction="none")
        weighted: Tensor = dro(losses, of_row(batch.rows))
        return weighted

    model = train_classifier(
        task,
        loss,
        stage=stage,
        passes=passes,
        order=lambda draws: task.weighted(groups, alpha, draws),
        state=dro,
    )
    return ModelPredictor(model, task.space, trainable(model))


def split_budget(task: Task, share: float) -> tuple[int, int]:
    """A first phase of `share` of the budget, and what is left for the second."""
    first = max(1, round(task.budget * share))
    return first, task.left(first)


def one_hot_mean(groups: Tensor, count: int) -> Tensor:
    """Shares of `count` groups."""
    return torch.bincount(groups, minlength=count).float() / len(groups)
