"""One pre-norm transformer block, whichever family it came from, that takes prompts as a prefix.

VPT-deep drops every layer's prompt outputs, so a layer's prompts act only as extra keys and
values: `prefix` computes those once per step instead of once per image. Exact, not approximate.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Prefix = tuple[Tensor, Tensor]
"""Keys and values of L prompts: [heads, L, d] for all rows, or [G, heads, L, d] for G branches."""

FEW_KEYS = 32
"""Up to this many, attention on a CPU is quicker written out than in the fused kernel."""


@dataclass(frozen=True, kw_only=True)
class BlockParts:
    """The pieces of one library block."""

    norm1: nn.Module
    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    out: nn.Linear
    norm2: nn.Module
    mlp: nn.Module
    scale1: Tensor | None = None
    scale2: Tensor | None = None


class Block(nn.Module):
    """x + Attention(Norm(x)), then x + MLP(Norm(x)); token 0 is CLS."""

    scale1: Tensor | None
    scale2: Tensor | None

    def __init__(self, parts: BlockParts, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = parts.norm1, parts.norm2
        self.qkv = fuse(parts.query, parts.key, parts.value)
        self.out, self.mlp = parts.out, parts.mlp
        self.scale1 = None if parts.scale1 is None else nn.Parameter(parts.scale1)
        self.scale2 = None if parts.scale2 is None else nn.Parameter(parts.scale2)

    def prefix(self, prompts: Tensor) -> Prefix:
        """Keys and values [..., heads, L, d] of prompts [..., L, D]."""
        keys, values = self._project(self.norm1(prompts), 1, 3)
        return keys, values

    def forward(self, x: Tensor, prefix: Prefix | None = None, cls_only: bool = False) -> Tensor:
        """Tokens [B, T, D] to [B, T, D], or [B, 1, D] for CLS alone.

        With a prefix [G, heads, L, d] the batch is branch-major: branch g owns rows
        g·(B/G) … (g+1)·(B/G)."""
        if cls_only:
            return self.residual(x[:, :1], self.cls_attention(self.norm1(x), prefix))
        q, k, v = self.attention_inputs(x)
        return self.residual(x, self.attend(q, k, v, prefix))

    def forward_shared(self, x: Tensor, prefix: Prefix, cls_only: bool = False) -> Tensor:
        """G branches from one input: x [B, T, D], prefix [G, heads, L, d] to [G·B, T, D].

        The branches enter the first layer with the same image tokens, so their LayerNorm and
        QKV are computed once; equals `forward` on x repeated G times."""
        branches = prefix[0].shape[0]
        if cls_only:
            return self.forward(_repeat(x, branches), prefix, cls_only)
        q, k, v = (_repeat(t, branches) for t in self.attention_inputs(x))
        return self.residual(_repeat(x, branches), self.attend(q, k, v, prefix))

    def forward_thinned(
        self, x: Tensor, prefix: Prefix | None, patches: int, keep: int
    ) -> tuple[Tensor, Tensor]:
        """`forward`; then, of the last `patches` tokens, only the `keep` that CLS attended to most,
        averaged over the heads. Also which these were: [B, keep], numbers of patches."""
        q, k, v = self.attention_inputs(x)
        out = self.residual(x, self.attend(q, k, v, prefix))
        with torch.no_grad():
            places = most_attended(q[:, :, :1], k, prefix, patches, keep)
        first = x.shape[1] - patches
        rows = (first + places)[:, :, None].expand(-1, -1, x.shape[2])
        return torch.cat([out[:, :first], out.gather(1, rows)], dim=1), places

    def attention_inputs(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys, values [B, heads, T, d] of the tokens."""
        q, k, v = self._project(self.norm1(x), 0, 3)
        return q, k, v

    def cls_attention(self, normed: Tensor, prefix: Prefix | None = None) -> Tensor:
        """What CLS, token 0 of `normed` [B, T, D], attends to: [B, 1, heads·d].

        One query needs no key or value of any token: q (W_k x)ᵀ = (q W_k) xᵀ, and the sum of
        weighted values is the value of the weighted sum of tokens."""
        (q,) = self._project(normed[:, :1], 0, 1)
        heads, d = q.shape[1], q.shape[3]
        _, keys, values = self.qkv.weight.view(3, heads, d, -1)
        q = q.squeeze(2) * d**-0.5
        asked = (q.transpose(0, 1) @ keys).transpose(0, 1)
        scores = asked @ normed.transpose(1, 2)
        if self.qkv.bias is not None:
            _, key_bias, value_bias = self.qkv.bias.view(3, heads, d)
            scores = scores + (q * key_bias).sum(-1, keepdim=True)
        given = 0
        if prefix is not None:
            before, told = (_for_rows(part, len(q)) for part in prefix)
            given = before.shape[2]
            scores = torch.cat([(before @ q[..., None]).squeeze(-1), scores], dim=2)
        weights = torch.softmax(scores, dim=-1)
        own = weights[:, :, given:]
        seen = ((own @ normed).transpose(0, 1) @ values.transpose(1, 2)).transpose(0, 1)
        if self.qkv.bias is not None:
            seen = seen + own.sum(-1, keepdim=True) * value_bias
        if prefix is not None:
            seen = seen + (weights[:, :, None, :given] @ told).squeeze(2)
        attended: Tensor = seen.flatten(1)[:, None]
        return attended

    def attend(self, q: Tensor, k: Tensor, v: Tensor, prefix: Prefix | None = None) -> Tensor:
        """Attention over [prefix, tokens], heads merged: [B, Tq, heads·d]."""
        if prefix is not None:
            k = torch.cat([_for_rows(prefix[0], len(k)), k], dim=2)
            v = torch.cat([_for_rows(prefix[1], len(v)), v], dim=2)
            if torch.is_grad_enabled():
                q = q.contiguous()  # else what is kept of it is q, k and v, of which it is a part
        return attention(q, k, v).transpose(1, 2).flatten(2)

    def residual(self, x: Tensor, attended: Tensor) -> Tensor:
        """Output projection and MLP, each added to its input."""
        attended = self.out(attended)
        x = x + (attended if self.scale1 is None else attended * self.scale1)
        update: Tensor = self.mlp(self.norm2(x))
        return x + (update if self.scale2 is None else update * self.scale2)

    def _project(self, normed: Tensor, first: int, last: int) -> tuple[Tensor, ...]:
        """The parts first…last of (query, key, value), each [..., heads, T, d]."""
        inner = self.qkv.out_features // 3
        weight: Tensor = self.qkv.weight
        bias: Tensor | None = self.qkv.bias
        if last - first < 3:  # views cost little, but an image alone costs little too
            rows = slice(first * inner, last * inner)
            weight, bias = weight[rows], None if bias is None else bias[rows]
        fused = F.linear(normed, weight, bias)
        split = fused.view(*fused.shape[:-1], last - first, self.heads, inner // self.heads)
        if torch.is_grad_enabled():  # slopes of the parts are then stacked as `fused` lies
            return tuple(part.transpose(-3, -2) for part in split.unbind(-3))
        return split.transpose(-4, -2).unbind(-3)


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """softmax(q kᵀ / √d) v."""
    if q.device.type == "cpu" and q.shape[2] > 1 and k.shape[2] <= FEW_KEYS:
        weights = torch.softmax((q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2), dim=-1)
        return weights @ v
    return F.scaled_dot_product_attention(q, k, v)


def most_attended(q: Tensor, k: Tensor, prefix: Prefix | None, patches: int, keep: int) -> Tensor:
    """[B, keep]: the patches, the last `patches` keys, with most of the one query's attention."""
    if prefix is not None:
        k = torch.cat([_for_rows(prefix[0], len(k)), k], dim=2)
    weights = torch.softmax((q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2), dim=-1)
    return weights.mean(dim=(1, 2))[:, -patches:].topk(keep, dim=1).indices


def fuse(query: nn.Linear, key: nn.Linear, value: nn.Linear) -> nn.Linear:
    """One linear layer that computes query, key and value."""
    three = (query, key, value)
    # skip_init: a fresh nn.Linear would draw from the global generator.
    fused: nn.Linear = nn.utils.skip_init(  # type: ignore[no-untyped-call]
        nn.Linear,
        query.in_features,
        3 * query.out_features,
        bias=query.bias is not None,
        device=query.weight.device,
    )
    with torch.no_grad():
        fused.weight.copy_(torch.cat([part.weight for part in three]))
        if query.bias is not None:
            fused.bias.copy_(torch.cat([part.bias for part in three]))
    return fused


def _repeat(x: Tensor, branches: int) -> Tensor:
    return x if branches == 1 else x.expand(branches, *x.shape).flatten(0, 1)


def _for_rows(prefix: Tensor, rows: int) -> Tensor:
    """[heads, L, d] or [G, heads, L, d] as [rows, heads, L, d], branch-major."""
    if prefix.dim() == 3 or prefix.shape[0] == 1:
        return prefix.expand(rows, *prefix.shape[-3:])
    branches = prefix.shape[0]
    if rows % branches:
        raise ValueError(f"a batch of {rows} rows does not divide into {branches} branches")
    return prefix[:, None].expand(-1, rows // branches, -1, -1, -1).flatten(0, 1)
