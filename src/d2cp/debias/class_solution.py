"""W^y on frozen features, solved once P0^a is fixed, instead of trained step by step.

Behind a fixed projection the class head, too, is a convex problem: its minimum needs no rate, no
length and no draws of a sampler, and a few hundred images leave nothing to a hidden layer. The
sampler's weights become weights of the loss; XRM's groups add a loss of their own. The additive
read-out (`additive_solution`) is another way to the same head; their average is a third.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from d2cp.config.debias import DebiasConfig
from d2cp.core.arrays import Floats
from d2cp.debias.adapters import AdapterClassifier
from d2cp.debias.additive_solution import solve_additive
from d2cp.debias.labels import Labels
from d2cp.debias.sampler import sample_weights
from d2cp.debias.soft_values import soft_weights
from d2cp.debias.solved_adapter import SolvedDualAdapter
from d2cp.debias.solved_head import solve_head


def class_weights(labels: Labels, config: DebiasConfig) -> Floats:
    """Of the training rows, 1 in all: the weighted sum of the terms that `D2CPObjective` has, each
    with its groups in equal shares; equal weights where there is no term."""
    y, train = labels.y, labels.train
    terms: list[tuple[float, Floats]] = []
    if config.use_pseudo:
        if config.soft_values and labels.shares is not None:
            own = soft_weights(y[train], labels.shares[train], config.alpha)
        else:
            own = sample_weights(labels.pseudo_groups()[train], config.alpha)
        terms.append((config.weight_y, own))
    if config.use_xrm:
        xrm = sample_weights(labels.target_groups()[train], config.alpha)
        terms.append((config.weight_xrm_y, xrm))
    whole: Floats = np.zeros(len(train))
    for weight, own in terms or [(1.0, np.ones(len(train)))]:
        whole += weight * own / own.sum()
    whole /= whole.sum()
    return whole


def install_class_head(
    model: SolvedDualAdapter | AdapterClassifier,
    features: Tensor,
    labels: Labels,
    config: DebiasConfig,
) -> None:
    """Solve the class head of `model` on its training rows; its adapter stays the identity."""
    with torch.no_grad():
        x = model.class_inputs(features[torch.from_numpy(labels.train)]).double()
    found = class_head(x, labels, config)
    _install(model.head_y if isinstance(model, SolvedDualAdapter) else model.head, found)


def class_head(x: Tensor, labels: Labels, config: DebiasConfig) -> Tensor:
    """[classes, D + 1] on what the head reads of the training rows, by `config.read_out`."""
    y, decay = torch.from_numpy(labels.y[labels.train]), config.class_decay
    heads = []
    if config.read_out != "additive" or not config.use_pseudo:
        weights = class_weights(labels, config)
        heads.append(solve_head(x, y, weights, labels.classes, decay))
    if config.read_out != "balanced" and config.use_pseudo:
        heads.append(solve_additive(x, y, value_parts(labels, config), labels.classes, decay))
    return torch.stack(heads).mean(0)


def value_parts(labels: Labels, config: DebiasConfig) -> Floats:
    """[training rows, values]: how surely each has each value; 0 or 1 where values are sure."""
    if config.soft_values and labels.shares is not None:
        return labels.shares[labels.train]
    assert labels.a is not None
    sure: Floats = np.eye(labels.values)[labels.a[labels.train]]
    return sure


def _install(head: nn.Linear, found: Tensor) -> None:
    with torch.no_grad():
        head.weight.copy_(found[:, :-1])
        head.bias.copy_(found[:, -1])
