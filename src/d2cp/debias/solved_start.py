"""Both heads for the first step of prompts, solved on what training images look like then."""

from __future__ import annotations

import torch
from torch import Tensor

from d2cp.config.debias import DebiasConfig
from d2cp.debias.class_solution import class_head
from d2cp.debias.labels import Labels
from d2cp.debias.projection import null_space_projection, row_space
from d2cp.debias.solved_branch import SolvedDualBranch
from d2cp.debias.spurious_solution import SOLVED_DECAY, solve_spurious


def install_start(
    model: SolvedDualBranch, features: Tensor, labels: Labels, config: DebiasConfig, *, seed: int
) -> int:
    """Solve both heads on `features` [n, D] of the training rows under `model.untrained()`;
    returns how many spurious heads could be read, and are removed."""
    h = features.float().cpu()
    mean, scale = torch.zeros(h.shape[1]), torch.ones(h.shape[1])
    if len(h) > 1:  # one image has no deviation
        mean, scale = h.mean(0), h.std(0).clamp_min(1e-6)
    x = (h - mean) / scale
    assert labels.a is not None
    decay = config.spurious_decay
    spurious = solve_spurious(
        x,
        labels.a[labels.train],
        labels.pseudo_groups()[labels.train],
        values=labels.values,
        heads=config.spurious_heads,
        decay=SOLVED_DECAY if decay is None else decay,
        seed=seed,
    )
    left = null_space_projection(x, row_space(spurious.weight, config.projection_rank))
    head_a = torch.cat([spurious.weight, spurious.bias[:, None]], dim=1)
    model.install(mean, scale, class_head(left.double(), labels, config).float(), head_a)
    return spurious.kept
