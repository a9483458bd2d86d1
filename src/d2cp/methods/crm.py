"""CRM (ICML 25), compositional risk minimisation: additive energies; sees train groups.

E(x, y, a) = E1(x, y) + E2(x, a) and a learnable offset B^(y, a); cross-entropy over groups on
-E - B^ + log p_train. Afterwards B*(y, a), the offset that fits a uniform prior, in closed form;
predict with it and sum over a. A group without a training sample is predicted all the same.

Fidelity: as published, on prompts; validation score is the comparison's rule, where the original
takes group-balanced accuracy. Natural batches hold few images of a rare group, so that a large rate
never settles: the rate, .01, is ours. Written from the published equations alone.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from d2cp.compare.contract import Param, Params, Predictor, Spec
from d2cp.compare.task import Batch, Task, trainable
from d2cp.compare.tiers import Classifier
from d2cp.compare.train_classifier import one_hot_mean, train_classifier
from d2cp.core.arrays import Rows
from d2cp.core.rng import numpy_generator

SAMPLE = 1024  # training images behind B* while states are compared; the final B* takes all


def additive_energies(logits: Tensor, classes: int) -> Tensor:
    """-E(x, y, a) [n, classes * attributes] from a head with outputs [-E1(y) | -E2(a)]."""
    e1, e2 = logits[:, :classes], logits[:, classes:]
    return (e1[:, :, None] + e2[:, None, :]).flatten(1)


def extrapolated_offset(negative_energy: Tensor, offset: Tensor, log_prior: Tensor) -> Tensor:
    """B*(z) = log mean_x [ exp(-E(x,z)) / sum_z' exp(-E(x,z') - B^(z') + log p(z')) ]."""
    evidence = (negative_energy - offset + log_prior).logsumexp(1, keepdim=True)
    return (negative_energy - evidence).logsumexp(0) - math.log(len(negative_energy))


def class_scores(negative_energy: Tensor, offset: Tensor, classes: int) -> Tensor:
    """log p(y | x) up to a constant, uniform prior over groups: sum over a of exp(-E - B*)."""
    by_class = (negative_energy - offset).view(len(negative_energy), classes, -1)
    return by_class.logsumexp(2)


class CrmPredictor:
    def __init__(self, task: Task, model: Classifier, offset: Tensor) -> None:
        self.model, self.offset = model, offset
        self._space, self._classes = task.space, task.classes
        self.trainable = trainable(model) + offset.numel()

    def logits(self, rows: Rows) -> Tensor:
        def scores(inputs: Tensor) -> Tensor:
            energy = additive_energies(self.model(inputs), self._classes)
            return class_scores(energy, self.offset.to(energy), self._classes)

        return self._space.over(scores, rows)


class Crm:
    spec = Spec(
        name="crm",
        title="CRM",
        venue="ICML 25",
        fidelity="as published, on prompts; selection by the comparison's rule",
        sees_train_groups=True,
        params={
            "lr": Param(default=0.01, low=0.001, high=0.1, log=True),
        },
    )

    def fit(self, task: Task, params: Params) -> Predictor:
        classes = task.classes
        of_row = task.lookup(task.groups)
        prior = one_hot_mean(torch.from_numpy(task.groups), task.group_count)
        log_prior = prior.log()  # minus infinity for a group without samples: it gets no mass
        model = task.classifier(classes + task.values)
        state = nn.ParameterList([nn.Parameter(torch.zeros(task.group_count))])

        def loss(net: Classifier, batch: Batch, y: Tensor) -> Tensor:
            energy = additive_energies(net(batch.images, batch.step), classes)
            return cross_entropy(energy - state[0] + log_prior.to(energy), of_row(batch.rows))

        def predictor(rows: Rows) -> CrmPredictor:
            with torch.no_grad():
                energy = additive_energies(task.space.over(model, rows), classes)
                return CrmPredictor(
                    task, model, extrapolated_offset(energy, state[0].detach().cpu(), log_prior)
                )

        sample = numpy_generator(task.seed, "crm/sample").permutation(task.train)[:SAMPLE]
        train_classifier(
            task,
            loss,
            stage="crm",
            model=model,
            state=state,
            select=lambda rows: predictor(sample).logits(rows),
        )
        return predictor(task.train)
