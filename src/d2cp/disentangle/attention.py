"""Where a concept's token is looked at: the denoiser's cross-attention maps."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from d2cp.disentangle.concept_model import ConceptModel
from d2cp.disentangle.diffusion import add_noise


@torch.no_grad()
def attention_maps(
    model: ConceptModel,
    images: Tensor,
    scalars: Tensor,
    noise: Tensor,
    shares: tuple[float, ...] = (0.3, 0.5, 0.7),
) -> Tensor:
    """[B,K,H,W]: how much each place attends to each token, averaged over heads, layers and some
    noise levels (given as shares of T); the K maps of a place sum to one."""
    tokens = model.concept_tokens(scalars)
    z0 = model.to_latents(images)
    size = images.shape[-2:]
    total = images.new_zeros(len(images), model.config.concepts, *size)
    count = 0
    for share in shares:
        t = torch.full((len(images),), int(share * model.config.timesteps), device=images.device)
        with _recording(model.denoiser) as records:
            model.denoise(add_noise(z0, noise, t, model.alpha_bar), t, tokens)
        for heads, query, key in records.values():
            grid = _weights(query, key, heads)
            total += F.interpolate(grid, size=size, mode="bilinear", align_corners=False)
            count += 1
    return total / count


def _weights(query: Tensor, key: Tensor, heads: int) -> Tensor:
    """softmax(q kᵀ / √d), mean over heads, as a square grid per token: [B,K,h,h]."""
    batch, places, width = query.shape
    q = query.reshape(batch, places, heads, width // heads).transpose(1, 2)
    k = key.reshape(batch, -1, heads, width // heads).transpose(1, 2)
    weights = (q @ k.transpose(-1, -2) / math.sqrt(width // heads)).softmax(-1).mean(1)
    side = math.isqrt(places)
    return weights.transpose(1, 2).reshape(batch, -1, side, side)


Record = tuple[int, Tensor, Tensor]


@contextmanager
def _recording(denoiser: nn.Module) -> Iterator[dict[str, Record]]:
    """Queries and keys of every cross-attention of one forward pass."""
    parts: dict[tuple[str, str], Tensor] = {}
    records: dict[str, Record] = {}
    hooks = []
    for name, module in denoiser.named_modules():
        if not name.endswith(".attn2"):
            continue

        def keep_query(_m: nn.Module, _i: object, out: Tensor, name: str = name) -> None:
            parts[name, "q"] = out

        def keep_key(
            _m: nn.Module, _i: object, out: Tensor, name: str = name, heads: int = module.heads
        ) -> None:
            records[name] = (heads, parts[name, "q"], out)

        hooks.append(module.to_q.register_forward_hook(keep_query))
        hooks.append(module.to_k.register_forward_hook(keep_key))
    try:
        yield records
    finally:
        for hook in hooks:
            hook.remove()
