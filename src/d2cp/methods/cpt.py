"""CPT (ICML 24), controllable prompt tuning: one gradient a group, mixed by a linear program.

Sees train groups. With l the group losses, r a preference and C = G G^T the groups' gradient
products: l^ ~ r l, mu = sum l^ log(K l^), a = r (log(K l^) - mu). While mu > 1e-4 the mix alpha
lowers the divergence of the losses from r; afterwards it lowers all of them.

Fidelity: objective, program and fallback as published, on prompts as published; sampling exponent
2 (Waterbirds) or 1 (CelebA). Only groups present in a batch enter the program.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from scipy.optimize import linprog
from torch import Tensor
from torch.nn.functional import cross_entropy

from d2cp.compare.contract import Param, Params, Predictor, Spec
from d2cp.compare.task import Batch, ModelPredictor, Task, trainable
from d2cp.compare.tiers import Classifier
from d2cp.compare.train_classifier import train_classifier
from d2cp.core.arrays import Floats
from d2cp.debias.group_losses import group_losses

BALANCED = 1e-4  # mu below which the losses count as spread as preferred


def imbalance(losses: Floats, preference: Floats) -> tuple[float, Floats]:
    """mu = sum l^ log(K l^) and a = r (log(K l^) - mu), with l^ ~ r l."""
    share = preference * losses
    share = share / share.sum()
    log_share = np.log(np.maximum(len(share) * share, 1e-12))
    mu = float((share * log_share).sum())
    return mu, preference * (log_share - mu)


def program(
    gram: Floats, losses: Floats, preference: Floats
) -> tuple[Floats, Floats, Floats, Floats, float]:
    """(mu > eps or not decides) objective c, rows j with (C alpha)_j >= rhs_j, and the bound
    alpha . Ca >= floor (minus infinity where there is none): maximise c . alpha on the simplex."""
    mu, a = imbalance(losses, preference)
    ca = gram @ a
    if mu <= BALANCED:
        return gram.sum(0), gram, np.zeros(len(ca)), ca, min(float(ca.max()), 0.0)
    rhs = np.zeros(len(ca))
    if (ca > 0).any():
        rhs = np.where(ca > 0, -np.inf, ca)
        worst = preference * losses
        rhs[worst == worst.max()] = 0.0
    return ca, gram, rhs, ca, -np.inf


def mixing_weights(gram: Floats, losses: Floats, preference: Floats) -> Floats:
    """alpha of the linear program; r / sum r where it has no solution."""
    fallback: Floats = preference / preference.sum()
    if losses.sum() <= 0:
        return fallback
    objective, rows, rhs, extra, floor = program(gram, losses, preference)
    bounded = np.isfinite(rhs)
    upper = [-rows[bounded]] + ([-extra[None]] if np.isfinite(floor) else [])
    limit = [-rhs[bounded]] + ([np.array([-floor])] if np.isfinite(floor) else [])
    scale = max(float(np.abs(gram).max()), 1e-12)  # the solver's tolerances are absolute
    found = linprog(
        -objective / scale,
        A_ub=np.concatenate(upper) / scale,
        b_ub=np.concatenate(limit) / scale,
        A_eq=np.ones((1, len(losses))),
        b_eq=[1.0],
        bounds=(0, None),
    )
    if not found.success:
        return fallback
    alpha = np.maximum(np.asarray(found.x, dtype=np.float64), 0)
    return np.asarray(alpha / alpha.sum())


def mixed_step_loss(losses: Tensor, parameters: list[Tensor], mix: Callable[..., Floats]) -> Tensor:
    """A loss whose value is sum alpha_g l_g and whose gradient is sum alpha_g grad l_g.

    The groups' gradients are there already, so no further pass through the network is needed: the
    gradient is handed on as that of a linear function of the parameters.
    """
    gradients = [
        torch.autograd.grad(loss, parameters, retain_graph=True) for loss in losses.unbind()
    ]
    matrix = torch.stack([torch.cat([g.flatten() for g in row]) for row in gradients]).double()
    alpha = torch.from_numpy(
        mix((matrix @ matrix.T).cpu().numpy(), losses.detach().double().cpu().numpy())
    ).to(losses)
    mixed = torch.split((alpha.double() @ matrix).to(losses), [p.numel() for p in parameters])
    linear = torch.stack(
        [(p.flatten() * g).sum() for p, g in zip(parameters, mixed, strict=True)]
    ).sum()
    return (alpha * losses.detach()).sum() + linear - linear.detach()


class Cpt:
    spec = Spec(
        name="cpt",
        title="CPT",
        venue="ICML 24",
        fidelity="as published: per-group gradients of the prompts, linear program, sampler",
        sees_train_groups=True,
        params={
            "alpha": Param(default=1.0, choices=(1.0, 2.0), published="2 Waterbirds, 1 CelebA")
        },
    )

    def fit(self, task: Task, params: Params) -> Predictor:
        groups, count = task.groups, task.group_count
        of_row = task.lookup(groups)

        def loss(model: Classifier, batch: Batch, y: Tensor) -> Tensor:
            each = cross_entropy(model(batch.images, batch.step), y, reduction="none")
            of_batch = of_row(batch.rows)
            present = torch.unique(of_batch)
            per_group = group_losses(each, of_batch, count)[present]
            preference = np.ones(len(present))
            return mixed_step_loss(
                per_group,
                [p for p in model.parameters() if p.requires_grad],
                lambda gram, losses: mixing_weights(gram, losses, preference),
            )

        alpha = float(params["alpha"])
        model = train_classifier(
            task, loss, stage="cpt", order=lambda draws: task.weighted(groups, alpha, draws)
        )
        return ModelPredictor(model, task.space, trainable(model))
