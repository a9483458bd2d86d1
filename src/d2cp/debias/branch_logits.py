"""From a batch to both branches' logits, for prompts over images and for adapters over features."""

from __future__ import annotations

from torch import Tensor

from d2cp.backbone import Backbone
from d2cp.config.debias import DebiasConfig
from d2cp.debias.adapters import AdapterClassifier, DualAdapter
from d2cp.debias.dual_branch import DualBranch, PromptClassifier
from d2cp.debias.loop import Batch
from d2cp.debias.objective import BranchLogits
from d2cp.debias.prompts import prompt_mask


def prompt_logits(
    model: DualBranch | PromptClassifier, backbone: Backbone, config: DebiasConfig, *, seed: int
) -> BranchLogits:
    """A training step's logits: prompts are dropped as a function of (seed, step)."""

    def logits(batch: Batch) -> tuple[Tensor, Tensor | None]:
        mask = None
        if config.prompt_dropout:
            shape = tuple(model.prompts.shape)
            mask = prompt_mask(shape, config.prompt_dropout, seed=seed, step=batch.step)
            mask = mask.to(batch.rows.device)
        out = model(backbone, batch.images, mask)
        return out if isinstance(model, DualBranch) else (out, None)

    return logits


def adapter_logits(model: DualAdapter | AdapterClassifier) -> BranchLogits:
    """`batch.images` are features [b, D]."""

    def logits(batch: Batch) -> tuple[Tensor, Tensor | None]:
        out = model(batch.images)
        return out if isinstance(model, DualAdapter) else (out, None)

    return logits
