"""GIC (ICML 24), group inference via data comparison, then GroupDRO on (y, y_s).

A spurious classifier on features minimises CE(y) - gamma KL(P(y | y_s)_train || P(y | y_s)_comp):
it agrees with the label, yet its relation to the label differs between the training set and a
comparison set of another group mix.

Fidelity: objective as published; gamma has no published value here (ours: 1). The comparison set is
the validation split (its classes, never its attributes); where its mix is that of training there is
little to compare, and the result says so.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from d2cp.compare.contract import Param, Params, Predictor, Spec
from d2cp.compare.heads import fit_head
from d2cp.compare.task import Task
from d2cp.compare.train_classifier import train_group_dro

SAME_MIX = 0.01  # a divergence below this: the two sets hardly differ


def class_given_spurious(spurious: Tensor, y: Tensor, classes: int) -> Tensor:
    """P(y | y_s) [spurious, classes] by soft counts of the probabilities `spurious` [n, S]."""
    joint = spurious.T @ one_hot(y, classes).to(spurious) + 1e-3  # no empty cell
    return joint / joint.sum(1, keepdim=True)


def comparison_divergence(train: Tensor, comparison: Tensor) -> Tensor:
    """KL(P_train || P_comp) summed over the values of y_s."""
    return (train * (train.log() - comparison.log())).sum()


def gic_objective(
    logits: Tensor, y: Tensor, other_logits: Tensor, other_y: Tensor, gamma: float
) -> Tensor:
    """CE - gamma KL of the two conditionals."""
    classes = logits.shape[1]
    divergence = comparison_divergence(
        class_given_spurious(logits.softmax(1), y, classes),
        class_given_spurious(other_logits.softmax(1), other_y, classes),
    )
    return cross_entropy(logits, y) - gamma * divergence


def spurious_head(task: Task, gamma: float, steps: int) -> nn.Linear:
    """The spurious classifier, and a note on whether there was anything to compare."""
    both = task.space.frozen(task.train), task.space.frozen(task.val)
    y, other_y = torch.from_numpy(task.y_train), torch.from_numpy(task.y[task.val])
    n, m = len(y), len(other_y)

    def loss(logits: Tensor, index: Tensor) -> Tensor:
        train = index < n
        if train.all() or not train.any():
            return cross_entropy(logits, torch.cat([y, other_y])[index])
        return gic_objective(
            logits[train], y[index[train]], logits[~train], other_y[index[~train] - n], gamma
        )

    copies = max(1, n // max(m, 1))  # so that a batch holds both sets in like numbers
    other = torch.cat([both[1]] * copies)
    other_y = torch.cat([other_y] * copies)
    head = fit_head(
        torch.cat([both[0], other]),
        task.classes,
        loss,
        seed=task.seed,
        stage="gic/spurious",
        steps=steps,
        batch_size=512,
    )
    with torch.no_grad():
        gap = comparison_divergence(
            class_given_spurious(head(both[0]).softmax(1), y, task.classes),
            class_given_spurious(head(other).softmax(1), other_y, task.classes),
        ).item()
    warning = "" if gap > SAME_MIX else ": validation has training's group mix, so little to learn"
    task.notes.append(f"GIC: divergence {gap:.4f} between training and validation{warning}")
    return head


class Gic:
    spec = Spec(
        name="gic",
        title="GIC",
        venue="ICML 24",
        fidelity="objective as published; gamma ours; validation split as comparison set",
        needs=frozenset({"prompts", "features"}),
        params={
            "gamma": Param(default=1.0, low=0.1, high=10.0, log=True),
            "steps": Param(default=300, choices=(100, 300, 1000)),
            "eta": Param(default=0.01, low=1e-3, high=1e-1, log=True, published="0.01, Group DRO"),
        },
    )

    def fit(self, task: Task, params: Params) -> Predictor:
        head = spurious_head(task, float(params["gamma"]), int(params["steps"]))
        with torch.no_grad():
            guess = head(task.space.frozen(task.train)).argmax(1).numpy()
        groups = task.classes * task.y_train + guess
        return train_group_dro(
            task,
            groups,
            task.classes**2,
            eta=float(params["eta"]),
            alpha=1.0,
            stage="gic",
            passes=task.budget,
        )
