"""How many parameters are trained and deployed, beside the frozen backbone's."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from d2cp.debias.adapters import Adapter
from d2cp.debias.training_tiers import DUAL, Model


@dataclass(frozen=True)
class ParameterCount:
    """Trainable parameters beside the frozen backbone's; an adapter that stays the identity has
    none."""

    branch: int  # prompts or adapter, and head, of the target branch: what is deployed
    trained: int  # all branches, a solved head too
    backbone: int

    @classmethod
    def of(cls, model: Model, backbone: int) -> ParameterCount:
        deployed = model.classifier() if isinstance(model, DUAL) else model
        return cls(branch=_count(deployed), trained=_count(model), backbone=backbone)

    def __str__(self) -> str:
        def share(count: int) -> str:
            return f"{count:,} ({100 * count / self.backbone:.2f}%)"

        return (
            f"one branch (deployed) {share(self.branch)}, trained {share(self.trained)} "
            f"of a backbone of {self.backbone:,} parameters"
        )


def _count(module: nn.Module) -> int:
    idle = [m for m in module.modules() if isinstance(m, Adapter) and m.idle]
    unused = sum(p.numel() for m in idle for p in m.parameters())
    return sum(p.numel() for p in module.parameters()) - unused
