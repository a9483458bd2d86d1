"""From a batch to both branches' logits, for prompts over images and for adapters over features."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from d2cp.backbone import Backbone
from d2cp.config.debias import DebiasConfig
from d2cp.core.processes import process_count
from d2cp.debias.adapters import AdapterClassifier, DualAdapter
from d2cp.debias.dual_branch import DualBranch, PromptClassifier
from d2cp.debias.loop import Batch
from d2cp.debias.objective import BranchLogits, Piece
from d2cp.debias.prompts import prompt_mask
from d2cp.debias.solved_branch import SolvedDualBranch

APART = 10_000_000
"""Numbers in a branch's tokens, over all blocks, from which branches are computed one after the
other: about a tenth of what going backwards keeps of them. Smaller matrices gain by being stacked
more than by lying in a cache."""


def one_by_one(backbone: Backbone, images: Tensor, config: DebiasConfig) -> bool:
    """Whether one branch goes backwards before the other is computed: half the memory. By size
    alone, and by the batch's that is set, not by a share of it: processes must agree. A gradient of
    the projector needs both branches; so does the loop's loss scale of fp16."""
    if config.projector_grad or config.precision == "fp16" or not torch.is_grad_enabled():
        return False
    height, width = backbone.grid(*images.shape[-2:])
    tokens = config.batch_size / process_count() * height * width
    return tokens * backbone.width * backbone.depth >= APART


def prompt_logits(
    model: DualBranch | PromptClassifier, backbone: Backbone, config: DebiasConfig, *, seed: int
) -> BranchLogits:
    """A training step's logits: prompts are dropped as a function of (seed, step)."""

    def logits(batch: Batch) -> Sequence[Piece]:
        mask = None
        if config.prompt_dropout:
            shape = tuple(model.prompts.shape)
            mask = prompt_mask(shape, config.prompt_dropout, seed=seed, step=batch.step)
            mask = mask.to(batch.rows.device)
        inputs = (backbone, batch.images, mask)
        if isinstance(model, PromptClassifier):
            return [lambda: {"y": model(*inputs)}]
        if isinstance(model, SolvedDualBranch):
            return [lambda: {"y": model.target(*inputs)}]
        if one_by_one(backbone, batch.images, config):
            return [lambda: {"y": model.target(*inputs)}, lambda: {"a": model.spurious(*inputs)}]
        return [lambda: dict(zip("ya", model(*inputs), strict=True))]

    return logits


def adapter_logits(model: DualAdapter | AdapterClassifier) -> BranchLogits:
    """`batch.images` are features [b, D]."""

    def logits(batch: Batch) -> Sequence[Piece]:
        if isinstance(model, AdapterClassifier):
            return [lambda: {"y": model(batch.images)}]
        return [lambda: dict(zip("ya", model(batch.images), strict=True))]

    return logits
