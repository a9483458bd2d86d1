"""The total objective: up to four GroupDRO terms over two branches, or plain cross-entropy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from d2cp.config.debias import DebiasConfig
from d2cp.core.arrays import Ints
from d2cp.core.gradients import taken_now
from d2cp.core.processes import global_mean
from d2cp.debias.group_losses import GroupDRO
from d2cp.debias.labels import Labels
from d2cp.debias.loop import Batch
from d2cp.debias.solved_adapter import SolvedDualAdapter
from d2cp.debias.solved_branch import SolvedDualBranch

Piece = Callable[[], Mapping[str, Tensor]]  # computes logits of "y", of "a" where it is learnt
BranchLogits = Callable[[Batch], Sequence[Piece]]  # both in one piece, or a piece each


class D2CPObjective(nn.Module):
    """Model and GroupDRO weights: all that a checkpoint of stage 2 must hold.

    Terms: (g, y) and (g, a) with the pseudo labels, (gamma^y, y) and (gamma^a, a) with XRM; those
    of the spurious branch only when there is one that learns. Without a term: ERM.
    """

    def __init__(
        self,
        model: nn.Module,
        logits: BranchLogits,
        labels: Labels,
        config: DebiasConfig,
    ) -> None:
        super().__init__()
        self.model = model
        self._logits = logits
        self._eta = config.eta
        self._y = torch.from_numpy(labels.y)
        self._a = None if labels.a is None else torch.from_numpy(labels.a)
        self.weights: dict[str, float] = {}
        self._groups: dict[str, Tensor] = {}
        self.dro = nn.ModuleDict()
        solved, bits = isinstance(model, SolvedDualAdapter | SolvedDualBranch), 2
        dual = config.dual_branch and not solved
        pairs = labels.classes * labels.values
        if config.use_pseudo:
            self._add("y", labels.pseudo_groups(), pairs, config.weight_y)
            if dual:
                self._add("a", labels.pseudo_groups(), pairs, config.weight_a)
        if config.use_xrm:
            self._add("xrm_y", labels.target_groups(), labels.classes * bits, config.weight_xrm_y)
            if dual:
                groups = labels.spurious_groups()
                self._add("xrm_a", groups, labels.values * bits, config.weight_xrm_a)

    def _add(self, name: str, groups: Ints, count: int, weight: float) -> None:
        self.dro[name] = GroupDRO(count, self._eta)
        self._groups[name] = torch.from_numpy(groups)
        self.weights[name] = weight

    def forward(self, batch: Batch) -> tuple[Tensor, Mapping[str, float]]:
        """The loss of the global batch, and its terms."""
        pieces = self._logits(batch)
        if not self.dro:
            losses = self._branch_losses(batch, pieces[0]())
            return global_mean(losses["y"].mean(), len(batch.rows)), {}
        totals: list[Tensor] = []
        values: dict[str, float] = {}
        for piece in pieces:
            terms = self._terms(batch, self._branch_losses(batch, piece()))
            total = torch.stack([self.weights[name] * term for name, term in terms.items()]).sum()
            # Apart, a branch's graph is gone before the next one's is made.
            totals.append(total if len(pieces) == 1 else taken_now(total, self.parameters()))
            values |= {name: term.item() for name, term in terms.items()}
        return torch.stack(totals).sum(), {f"loss_{name}": values[name] for name in self.dro}

    def _terms(self, batch: Batch, losses: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The GroupDRO terms of these branches."""
        rows, device = batch.rows.cpu(), batch.rows.device
        return {
            name: dro(losses[name[-1]], self._groups[name][rows].to(device))
            for name, dro in self.dro.items()
            if name[-1] in losses
        }

    def _branch_losses(self, batch: Batch, logits: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Cross-entropy per image of each branch, computed once a batch."""
        rows, device = batch.rows.cpu(), batch.rows.device
        losses = {}
        if "y" in logits:
            y = self._y[rows].to(device)
            losses["y"] = cross_entropy(logits["y"], y, reduction="none")
        if "a" in logits:
            assert self._a is not None
            losses["a"] = over_heads(logits["a"], self._a[rows].to(device))
        return losses


def over_heads(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy per image of [B, A], or its mean over the heads of [B, heads, A]."""
    if logits.dim() == 2:
        return cross_entropy(logits, labels, reduction="none")
    repeated = labels.unsqueeze(1).expand(-1, logits.shape[1])
    return cross_entropy(logits.transpose(1, 2), repeated, reduction="none").mean(dim=1)
