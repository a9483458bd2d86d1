"""VPT-deep prompts as key/value prefixes.

VPT-deep drops the prompts' outputs after every layer, so all that a prompt ever does is to lend
its key and its value to the other tokens. Those are computed once a step, not once an image, and
prompt tokens pass through no output projection and no MLP. This is exact.
"""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor

from d2cp.backbone import Backbone, Block, Prefix
from d2cp.core.parts import in_parts
from d2cp.core.rng import torch_generator


def init_prompts(
    branches: int, layers: int, length: int, width: int, patch: int, *, seed: int
) -> Tensor:
    """[branches, layers, L, D] from U(-b, b), b = sqrt(6 / (3 p^2 + D))."""
    bound = math.sqrt(6 / (3 * patch**2 + width))
    generator = torch_generator(seed, "debias/prompts")
    uniform = torch.rand(branches, layers, length, width, generator=generator)
    return (2 * uniform - 1) * bound


def prompt_mask(shape: tuple[int, ...], dropout: float, *, seed: int, step: int) -> Tensor:
    """Dropout of prompt values: one mask per step and branch, a function of (seed, step)."""
    generator = torch_generator(seed, "debias/prompt-dropout", step)
    return (torch.rand(shape, generator=generator) >= dropout).float() / (1 - dropout)


def prefixes(backbone: Backbone, prompts: Tensor) -> list[Prefix]:
    """Keys and values [branches, heads, L, d] of every layer's prompts."""
    return [block.prefix(prompts[:, layer]) for layer, block in enumerate(_blocks(backbone))]


def features_with_prefixes(backbone: Backbone, layers: list[Prefix], pixels: Tensor) -> Tensor:
    """CLS features [branches, B, D] of normalised pixels, all branches in one batched pass.

    The patch embedding and the first layer's queries, keys and values do not depend on prompts:
    they are computed once for all branches and carry no gradient. Only CLS is read at the end, so
    the last block is computed for CLS alone.
    """

    def rows_first(part: Tensor) -> Tensor:
        return _features(backbone, layers, part).transpose(0, 1)

    keys_and_values = [tensor for prefix in layers for tensor in prefix]
    return in_parts(rows_first, (pixels,), keys_and_values).transpose(0, 1)


def _features(backbone: Backbone, layers: list[Prefix], pixels: Tensor) -> Tensor:
    branches = layers[0][0].shape[0]
    x = backbone.embed(pixels)
    x = _blocks(backbone)[0].forward_shared(x, layers[0], cls_only=len(layers) == 1)
    for index in range(1, len(layers)):
        x, _ = backbone.block(index, x, layers[index])
    return backbone.final_norm(x[:, 0]).view(branches, len(pixels), -1)


def prompted_features(backbone: Backbone, prompts: Tensor, images: Tensor) -> Tensor:
    """h = F_V(x, V): CLS features [branches, B, D] of images in [0, 1]."""
    pixels = backbone.normalise(images)
    return features_with_prefixes(backbone, prefixes(backbone, prompts), pixels)


def _blocks(backbone: Backbone) -> list[Block]:
    return [cast(Block, block) for block in backbone.blocks]
