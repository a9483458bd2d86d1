"""Two branches over frozen features whose spurious one was solved first.

The class branch never meets a spurious direction: P0^a is applied to what its adapter reads and to
what its head reads. Without a direction to remove it is the single branch, step for step.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from d2cp.debias.adapters import AdapterClassifier, DualAdapter
from d2cp.debias.projection import fold, null_space_projection, row_space
from d2cp.debias.spurious_solution import SpuriousSolution


class SolvedDualAdapter(DualAdapter):
    """`install` sets W^a; the spurious adapter stays the identity, and neither is trained."""

    def install(self, solution: SpuriousSolution) -> None:
        with torch.no_grad():
            self.head_a.weight.copy_(solution.weight)
            if self.head_a.bias is not None:
                self.head_a.bias.copy_(solution.bias)
        for part in (self.adapter_a, self.head_a):
            part.requires_grad_(False)

    @property
    def directions(self) -> int:
        """How many are removed."""
        return int((self._basis().abs().amax(0) > 0).sum())

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Class logits W^y P0^a h^y, and those of the first spurious head."""
        logits_y = self.head_y(self.class_inputs(features))
        values, bias = self.values, self.head_a.bias
        first = None if bias is None else bias[:values]
        return logits_y, linear(self.adapter_a(features), self.head_a.weight[:values], first)

    def class_inputs(self, features: Tensor) -> Tensor:
        """P0^a h^y, what the class head reads."""
        basis = self._basis()
        return null_space_projection(self.adapter_y(features, basis), basis)

    def classifier(self) -> AdapterClassifier:
        """The class branch with P0^a folded into its head and into the rows of V."""
        adapter = copy.deepcopy(self.adapter_y)
        with torch.no_grad():
            adapter.down.weight.copy_(fold(adapter.down.weight, self._basis()))
        return AdapterClassifier(adapter, self.folded_target())

    def shortcut(self) -> AdapterClassifier:
        """The first spurious head, which reads all that there is."""
        values = self.values
        head = nn.Linear(self.head_a.in_features, values, bias=self.head_a.bias is not None)
        with torch.no_grad():
            head.weight.copy_(self.head_a.weight[:values])
            if self.head_a.bias is not None:
                head.bias.copy_(self.head_a.bias[:values])
        return AdapterClassifier(copy.deepcopy(self.adapter_a), head.to(self.head_a.weight.device))

    def _basis(self) -> Tensor:
        return row_space(self.head_a.weight, self.config.projection_rank)
