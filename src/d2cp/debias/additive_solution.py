"""The other read-out of a solved class head: class and value explained side by side.

Balanced shares make a minority of fifty images speak for half of its class. The additive form
leaves all images their natural shares and models (y, a) jointly, -E1(x, y) - E2(x, a) - B(y, a)
plus the log prior, as CRM does: what tells the value goes into E2, how often values come with
classes into B and the prior, and E1 is left with the class. Prediction drops E2 and takes all
values as equally frequent; B* is CRM's offset for that. Its mean over the values is subtracted,
where CRM sums over them: the head stays linear, so that it can be folded, and the answers are
nearly the same.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import log_softmax

from d2cp.core.arrays import Floats
from d2cp.debias.solved_head import minimise

LEAST = 1e-6  # prior of a group without images


def additive_energies(head: Tensor, x: Tensor, classes: int) -> Tensor:
    """-E1(x, y) - E2(x, a) [n, classes, values] of a head [classes + values, D + 1]."""
    parts = x @ head[:, :-1].T + head[:, -1]
    return parts[:, :classes, None] + parts[:, None, classes:]


def additive_loss(
    head: Tensor, offset: Tensor, x: Tensor, targets: Tensor, prior: Tensor, decay: float
) -> Tensor:
    """Cross-entropy over groups of -E - B + log p on `targets` [n, classes, values], each image's
    shares in the groups, and decay/2 |W|^2."""
    energies = additive_energies(head, x, targets.shape[1])
    logs = log_softmax((energies - offset + prior.log()).flatten(1), 1)
    fit = -(targets.flatten(1) * logs).sum(1).mean()
    return fit + decay / 2 * head[:, :-1].square().sum()


def uniform_offset(energies: Tensor, offset: Tensor, prior: Tensor) -> Tensor:
    """B*(y, a) = log mean_x [ exp(-E(x, y, a)) / sum exp(-E(x, .) - B + log p) ]."""
    evidence = (energies - offset + prior.log()).flatten(1).logsumexp(1)
    return (energies - evidence[:, None, None]).logsumexp(0) - math.log(len(energies))


def solve_additive(x: Tensor, y: Tensor, shares: Floats, classes: int, decay: float) -> Tensor:
    """[classes, D + 1]: E1 with B*; `shares` [n, values] say how surely an image has each value."""
    values = shares.shape[1]
    targets = x.new_zeros(len(y), classes, values)
    targets[torch.arange(len(y)), y] = torch.from_numpy(shares).to(x)
    prior = targets.mean(0).clamp_min(LEAST)
    outputs = classes + values
    weights = outputs * (x.shape[1] + 1)

    def parts(flat: Tensor) -> tuple[Tensor, Tensor]:
        return flat[:weights].view(outputs, -1), flat[weights:].view(classes, values)

    def loss(flat: Tensor) -> Tensor:
        head, offset = parts(flat)
        return additive_loss(head, offset, x, targets, prior, decay)

    head, offset = parts(minimise(loss, x.new_zeros(weights + classes * values)))
    star = uniform_offset(additive_energies(head, x, classes), offset, prior)
    found = head[:classes].clone()
    found[:, -1] -= star.mean(1)
    return found
