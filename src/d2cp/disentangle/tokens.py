"""The token map Φ (Eq. mapping_function): each scalar s_k becomes a token E_k of length D."""

from __future__ import annotations

import itertools

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class ConceptTokens(nn.Module):
    """Φ as `concepts` small networks, run as one batched product per layer."""

    def __init__(self, concepts: int, hidden: tuple[int, ...], dim: int) -> None:
        super().__init__()
        widths = (1, *hidden, dim)
        self.weights = nn.ParameterList()
        self.biases = nn.ParameterList()
        for fan_in, fan_out in itertools.pairwise(widths):
            bound = fan_in**-0.5
            self.weights.append(nn.Parameter(torch.empty(concepts, fan_in, fan_out)))
            self.biases.append(nn.Parameter(torch.empty(concepts, 1, fan_out)))
            nn.init.uniform_(self.weights[-1], -bound, bound)
            nn.init.uniform_(self.biases[-1], -bound, bound)

    def forward(self, scalars: Tensor) -> Tensor:
        x = scalars.T.unsqueeze(-1)
        last = len(self.weights) - 1
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = torch.baddbmm(bias, x, weight)
            if i < last:
                x = F.elu(x)
        return x.transpose(0, 1)


class SharedTokens(nn.Module):
    """Φ shared by all concepts. A learned embedding of the concept joins its scalar: without it
    two concepts with equal scalars would give equal tokens, and attention ignores their order."""

    def __init__(self, concepts: int, hidden: tuple[int, ...], dim: int) -> None:
        super().__init__()
        widths = (1 + dim, *hidden, dim)
        self.embedding = nn.Parameter(torch.randn(concepts, dim))
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(widths))

    def forward(self, scalars: Tensor) -> Tensor:
        identity = self.embedding.expand(len(scalars), -1, -1)
        x = torch.cat([scalars.unsqueeze(-1), identity], dim=-1)
        for layer in self.layers[:-1]:
            x = F.elu(layer(x))
        out: Tensor = self.layers[-1](x)
        return out


def build_tokens(
    kind: str, concepts: int, hidden: tuple[int, ...], dim: int, gain: float = 1.0
) -> nn.Module:
    """Φ with each layer's initial weights times `gain`."""
    make = ConceptTokens if kind == "per-concept" else SharedTokens
    tokens = make(concepts, hidden, dim)
    with torch.no_grad():
        for name, parameter in tokens.named_parameters():
            if "weight" in name:
                parameter.mul_(gain)
    return tokens
