"""PDE+ElRep (AISTATS 25; "EIRep" in the paper's table): PDE with an elastic representation.

Adds theta1 sum s_i / n + theta2 sum s_i^2 / n, s the singular values of the batch's last features.

Fidelity: penalty and its weights as published, on top of our PDE.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from d2cp.compare.contract import Param, Params, Predictor, Spec
from d2cp.compare.task import Batch, Task
from d2cp.compare.tiers import Classifier
from d2cp.methods.pde import PARAMS, fit_pde


def elastic_penalty(features: Tensor, theta1: float, theta2: float) -> Tensor:
    """theta1 * (nuclear norm) / n + theta2 * (Frobenius norm)^2 / n of features [n, D]."""
    h = features.float()
    nuclear: Tensor = torch.linalg.svdvals(h).sum()
    return (theta1 * nuclear + theta2 * h.square().sum()) / len(h)


class ElRep:
    spec = Spec(
        name="elrep",
        title="PDE+ElRep",
        venue="AISTATS 25",
        fidelity="penalty as published (theta 1e-3, 1e-4), on our PDE",
        sees_train_groups=True,
        params=PARAMS
        | {
            "theta1": Param(default=1e-3, low=1e-4, high=1e-2, log=True, published="1e-3"),
            "theta2": Param(default=1e-4, low=1e-5, high=1e-3, log=True, published="1e-4"),
        },
    )

    def fit(self, task: Task, params: Params) -> Predictor:
        theta1, theta2 = float(params["theta1"]), float(params["theta2"])

        def loss(model: Classifier, batch: Batch, y: Tensor) -> Tensor:
            h = model.features(batch.images, batch.step)
            return cross_entropy(model.head(h), y) + elastic_penalty(h, theta1, theta2)

        return fit_pde(task, params, loss, "elrep")
