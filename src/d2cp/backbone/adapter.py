"""A frozen ViT seen as embed → blocks → final norm, the same for every family."""

from __future__ import annotations

from typing import Any, Self, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from d2cp.backbone.block import Block, Prefix
from d2cp.backbone.families import Family, Triple, copied
from d2cp.data.pixels import standardised
from d2cp.errors import BackboneError


class Backbone(nn.Module):
    """Frozen: no parameter takes a gradient, and it never leaves eval mode."""

    distillation: Tensor | None
    registers: Tensor | None

    def __init__(
        self,
        model: nn.Module,
        config: Any,
        family: Family,
        name: str,
        normalisation: tuple[Triple, Triple],
    ) -> None:
        super().__init__()
        parts = family.parts(model)
        self.name, self.family = name, family.name
        self.width, self.heads = int(config.hidden_size), int(config.num_attention_heads)
        self.depth = len(parts.blocks)
        self.patch_size, self.image_size = int(config.patch_size), int(config.image_size)
        self.mean, self.std = normalisation
        self._antialias = parts.antialias
        self.patch = parts.patch
        self.cls = nn.Parameter(parts.cls.detach().clone())
        self.positions = nn.Parameter(parts.positions.detach().clone())
        self.distillation, self.registers = copied(parts.distillation), copied(parts.registers)
        self.pre_norm = parts.pre_norm or nn.Identity()
        self.blocks = nn.ModuleList([Block(block, self.heads) for block in parts.blocks])
        self.norm = parts.final_norm
        self.keep_patches = 1.0
        self.requires_grad_(False)
        self.eval()

    @property
    def parameter_count(self) -> int:
        return sum(parameter.numel() for parameter in self.parameters())

    def train(self, mode: bool = True) -> Self:
        """Always eval mode: dropout of the backbone is off also while prompts are trained."""
        return super().train(False)

    def normalise(self, images: Tensor) -> Tensor:
        """Images in [0, 1], [B, 3, H, W], in the units this network was trained on."""
        return standardised(images, self.mean, self.std)

    def embed(self, pixels: Tensor) -> Tensor:
        """Normalised pixels [B, 3, H, W] to tokens [B, T, D], CLS first."""
        height, width = self.grid(*pixels.shape[-2:])
        batch = len(pixels)
        special, table = self._position_table(height, width)
        patches = self.patch(pixels).flatten(2).transpose(1, 2) + table
        first: Tensor = self.cls
        if self.distillation is not None:
            first = torch.cat([first, self.distillation], dim=1)
        tokens = [(first + special).expand(batch, -1, -1)]
        if self.registers is not None:
            tokens.append(self.registers.expand(batch, -1, -1))
        embedded: Tensor = self.pre_norm(torch.cat([*tokens, patches], dim=1))
        return embedded

    def final_norm(self, x: Tensor) -> Tensor:
        normed: Tensor = self.norm(x)
        return normed

    def forward(self, pixels: Tensor) -> Tensor:
        """All tokens after the final norm, [B, T, D]."""
        x = self.embed(pixels)
        for block in self.blocks:
            x = block(x)
        return self.final_norm(x)

    def features(self, pixels: Tensor) -> Tensor:
        """CLS after the final norm, [B, D]; the last block is computed for CLS alone."""
        x = self.embed(pixels)
        for index in range(self.depth):
            x, _ = self.block(index, x)
        return self.final_norm(x[:, 0])

    def thinned(self, keep_patches: float) -> Self:
        """This backbone, its features from now on with only this share of the patches after a
        third of the blocks: those that CLS attends to most there."""
        if not 0 < keep_patches <= 1:
            raise BackboneError(
                f"keep_patches = {keep_patches}", expected="a share above 0, at most 1"
            )
        if keep_patches < 1 and self._thins_after >= self.depth:
            raise BackboneError(
                f"backbone {self.name} has {self.depth} blocks: too few to drop patches between",
                expected="more than 2 blocks, or debias.keep_patches = 1",
                remedy="leave debias.keep_patches at 1",
            )
        self.keep_patches = keep_patches
        return self

    @property
    def _thins_after(self) -> int:
        return max(2, self.depth // 3)  # blocks; the first may be shared by two branches

    def block(
        self, index: int, x: Tensor, prefix: Prefix | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """A block on the way to features, the last for CLS alone; where patches are dropped after
        it, also which stay, [B, n]."""
        block = cast(Block, self.blocks[index])
        if self.keep_patches < 1 and index + 1 == self._thins_after:
            patches = x.shape[1] - self._first_patch
            keep = max(1, round(self.keep_patches * patches))
            return block.forward_thinned(x, prefix, patches, keep)
        return block(x, prefix, cls_only=index == self.depth - 1), None

    @property
    def _first_patch(self) -> int:
        """Tokens before the patches."""
        registers = 0 if self.registers is None else self.registers.shape[1]
        return 1 + (self.distillation is not None) + registers

    def grid(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns of patches; a size that does not divide into them is an error."""
        if height % self.patch_size or width % self.patch_size or not height or not width:
            down = max(1, min(height, width) // self.patch_size) * self.patch_size
            raise BackboneError(
                f"images of {height}×{width} pixels do not divide into patches of backbone "
                f"{self.name}",
                expected=f"height and width that {self.patch_size} divides",
                remedy=f"resize the images to {down}×{down} or {self.image_size}×{self.image_size}",
            )
        return height // self.patch_size, width // self.patch_size

    def _position_table(self, height: int, width: int) -> tuple[Tensor, Tensor]:
        """Positions of the special tokens and of a height × width grid of patches."""
        special = 1 if self.distillation is None else 2
        first, table = self.positions[:, :special], self.positions[:, special:]
        side = round(table.shape[1] ** 0.5)
        if (height, width) != (side, side):
            square = table.reshape(1, side, side, -1).permute(0, 3, 1, 2)
            square = F.interpolate(
                square, size=(height, width), mode="bicubic", antialias=self._antialias
            )
            table = square.flatten(2).transpose(1, 2)
        return first, table
