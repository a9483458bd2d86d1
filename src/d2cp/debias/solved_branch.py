"""Two branches under prompts whose heads were solved before the first step.

Under untrained prompts an image's features are given, so that both heads are the convex problems
that they are on frozen features: W^a first, one head after another, then W^y behind P0^a. From
there the class branch trains, prompts and W^y; P0^a stays, and the spurious branch costs no pass.
Features are read in units of the training images under the untrained prompts: in raw units their
mean and their few large coordinates would decide what is orthogonal to what.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from d2cp.backbone import Backbone
from d2cp.config.debias import DebiasConfig
from d2cp.debias.dual_branch import DualBranch, PromptClassifier
from d2cp.debias.projection import fold, null_space_projection, row_space


class SolvedDualBranch(DualBranch):
    """`prompts` [1, layers, L, D] are the class branch's; the spurious one keeps those of the
    start."""

    learning = 1
    start: Tensor
    mean: Tensor
    scale: Tensor

    def __init__(
        self, prompts: Tensor, head_y: nn.Linear, head_a: nn.Linear, config: DebiasConfig
    ) -> None:
        super().__init__(prompts, head_y, head_a, config)
        width = head_y.in_features
        self.register_buffer("start", prompts.detach().clone())
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))
        head_a.requires_grad_(False)

    @torch.no_grad()
    def install(self, mean: Tensor, scale: Tensor, head_y: Tensor, head_a: Tensor) -> None:
        """Units of the features, and both heads in them: [outputs, D + 1], the bias last."""
        self.mean.copy_(mean)
        self.scale.copy_(scale)
        for head, found in ((self.head_y, head_y), (self.head_a, head_a)):
            head.weight.copy_(found[:, :-1])
            head.bias.copy_(found[:, -1])

    def untrained(self) -> PromptClassifier:
        """Features under the prompts of the start: `install` wants heads for these."""
        return PromptClassifier(self.start.clone(), nn.Linear(len(self.mean), 1)).to(
            self.mean.device
        )

    def forward(
        self, backbone: Backbone, images: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Class logits, and those of the first spurious head, which does not learn."""
        return self.target(backbone, images, mask), self.spurious(backbone, images)

    def spurious(self, backbone: Backbone, images: Tensor, mask: Tensor | None = None) -> Tensor:
        logits: Tensor = self.shortcut()(backbone, images)
        return logits

    def target_logits(self, h_y: Tensor) -> Tensor:
        """W^y P0^a of the feature in its units."""
        x = null_space_projection((h_y - self.mean) / self.scale, self._basis())
        logits: Tensor = self.head_y(x)
        return logits

    def classifier(self) -> PromptClassifier:
        """The class branch, units and P0^a folded into its head."""
        weight = fold(self.head_y.weight, self._basis())
        return PromptClassifier(self.prompts.detach().clone(), self._raw(weight, self.head_y.bias))

    def shortcut(self) -> PromptClassifier:
        """The first spurious head, which reads all that there is under untrained prompts."""
        values = self.values
        head = self._raw(self.head_a.weight[:values], self.head_a.bias[:values])
        return PromptClassifier(self.start.clone(), head)

    @torch.no_grad()
    def _raw(self, weight: Tensor, bias: Tensor) -> nn.Linear:
        """The head that answers the feature itself as this one does the feature in its units."""
        head = nn.Linear(weight.shape[1], len(weight)).to(weight.device)
        head.weight.copy_(weight / self.scale)
        head.bias.copy_(bias - head.weight @ self.mean)
        return head

    def _basis(self) -> Tensor:
        return row_space(self.head_a.weight, self.config.projection_rank)
