"""The trainable part: prompts and heads. The frozen backbone is an argument, never a member, so a
state holds what was trained and nothing else."""

from __future__ import annotations

from typing import ClassVar, Self

from torch import Tensor, nn

from d2cp.backbone import Backbone
from d2cp.config.debias import DebiasConfig
from d2cp.debias.cross_heads import CrossHeads, init_head
from d2cp.debias.prompts import init_prompts, prompted_features


def _prompts(backbone: Backbone, branches: int, config: DebiasConfig, seed: int) -> Tensor:
    layers, width = len(backbone.blocks), backbone.width
    patch = backbone.patch_size
    return init_prompts(branches, layers, config.prompt_length, width, patch, seed=seed)


class PromptClassifier(nn.Module):
    """One branch: prompts [1, layers, L, D] and a linear head. ERM, rivals, and what is shipped."""

    def __init__(self, prompts: Tensor, head: nn.Linear) -> None:
        super().__init__()
        self.prompts = nn.Parameter(prompts)
        self.head = head

    @classmethod
    def new(
        cls, backbone: Backbone, classes: int, config: DebiasConfig, *, seed: int
    ) -> PromptClassifier:
        head = init_head(classes, backbone.width, config, seed=seed, name="y")
        return cls(_prompts(backbone, 1, config, seed), head)

    def features(self, backbone: Backbone, images: Tensor, mask: Tensor | None = None) -> Tensor:
        """h [B, D]; `mask` is the step's prompt dropout."""
        prompts = self.prompts if mask is None else self.prompts * mask
        return prompted_features(backbone, prompts, images)[0]

    def forward(self, backbone: Backbone, images: Tensor, mask: Tensor | None = None) -> Tensor:
        logits: Tensor = self.head(self.features(backbone, images, mask))
        return logits


class DualBranch(CrossHeads):
    """V^y, V^a, W^y, W^a: each branch is read after the other head's row space was removed."""

    learning: ClassVar[int] = 2
    """Branches whose prompts learn."""

    def __init__(
        self, prompts: Tensor, head_y: nn.Linear, head_a: nn.Linear, config: DebiasConfig
    ) -> None:
        super().__init__(head_y, head_a, config)
        self.prompts = nn.Parameter(prompts)

    @classmethod
    def new(
        cls, backbone: Backbone, classes: int, values: int, config: DebiasConfig, *, seed: int
    ) -> Self:
        return cls(
            _prompts(backbone, cls.learning, config, seed),
            init_head(classes, backbone.width, config, seed=seed, name="y"),
            init_head(values * config.spurious_heads, backbone.width, config, seed=seed, name="a"),
            config,
        )

    def forward(
        self, backbone: Backbone, images: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Logits W^y P0^a h^y and W^a P0^y h^a."""
        h_y, h_a = prompted_features(backbone, self._masked(mask), images)
        return self.cross_logits(h_y, h_a)

    def target(self, backbone: Backbone, images: Tensor, mask: Tensor | None = None) -> Tensor:
        """The first of `forward`, without computing the other."""
        return self.target_logits(prompted_features(backbone, self._masked(mask)[:1], images)[0])

    def spurious(self, backbone: Backbone, images: Tensor, mask: Tensor | None = None) -> Tensor:
        """The second of `forward`, without computing the other."""
        return self.spurious_logits(prompted_features(backbone, self._masked(mask)[1:], images)[0])

    def _masked(self, mask: Tensor | None) -> Tensor:
        return self.prompts if mask is None else self.prompts * mask

    def classifier(self) -> PromptClassifier:
        """The target branch with P0^a folded into its head: one pass, same logits."""
        return self._branch(0, self.folded_target())

    def shortcut(self) -> PromptClassifier:
        """The spurious branch, folded: tells the suspected shortcut value of an image."""
        return self._branch(1, self.folded_spurious())

    def _branch(self, branch: int, head: nn.Linear) -> PromptClassifier:
        return PromptClassifier(self.prompts[branch : branch + 1].detach().clone(), head)
