"""Prompts as key/value prefixes equal VPT-deep written out; the short cuts equal the long way."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from d2cp.backbone import Backbone, backbone_from_config
from d2cp.backbone.block import FEW_KEYS, attention

L, G, B = 5, 2, 3


@pytest.fixture
def backbone(config: Any) -> Backbone:
    model = backbone_from_config(config)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.1)
    return model


@pytest.fixture
def tokens(backbone: Backbone) -> Tensor:
    pixels = torch.randn(B, 3, 28, 28, generator=torch.Generator().manual_seed(2))
    return backbone.embed(pixels)


def make_prompts(backbone: Backbone, *lead: int) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    shape = (backbone.depth, *lead, L, backbone.width)
    return torch.randn(shape, generator=generator).requires_grad_()


def vpt_deep(backbone: Backbone, x: Tensor, prompts: Tensor) -> Tensor:
    """The plain form: [CLS, prompts, patches] through each block, prompt outputs dropped."""
    for block, layer_prompts in zip(backbone.blocks, prompts, strict=True):
        full = torch.cat([x[:, :1], layer_prompts.expand(len(x), -1, -1), x[:, 1:]], dim=1)
        full = block(full)
        x = torch.cat([full[:, :1], full[:, 1 + L :]], dim=1)
    return x


def prefixed(backbone: Backbone, x: Tensor, prompts: Tensor) -> Tensor:
    for block, layer_prompts in zip(backbone.blocks, prompts, strict=True):
        x = block(x, block.prefix(layer_prompts))
    return x


def test_prefix_equals_plain_vpt_deep(backbone: Backbone, tokens: Tensor) -> None:
    prompts = make_prompts(backbone)
    plain = vpt_deep(backbone, tokens, prompts)
    fast = prefixed(backbone, tokens, prompts)
    torch.testing.assert_close(fast, plain, atol=1e-5, rtol=1e-5)
    weight = torch.randn(plain.shape, generator=torch.Generator().manual_seed(4))
    (expected,) = torch.autograd.grad((plain * weight).sum(), prompts)
    (found,) = torch.autograd.grad((fast * weight).sum(), prompts)
    torch.testing.assert_close(found, expected, atol=1e-5 * float(expected.abs().max()), rtol=1e-4)


def test_branches_in_one_batch_equal_branches_apart(backbone: Backbone, tokens: Tensor) -> None:
    prompts = make_prompts(backbone, G)
    together = prefixed(backbone, tokens.repeat(G, 1, 1), prompts)
    for g in range(G):
        apart = prefixed(backbone, tokens, prompts[:, g])
        torch.testing.assert_close(together[g * B : (g + 1) * B], apart, atol=1e-5, rtol=1e-5)


def test_shared_first_layer_equals_repeated_input(backbone: Backbone, tokens: Tensor) -> None:
    block = backbone.blocks[0]
    prefix = block.prefix(make_prompts(backbone, G)[0])
    for cls_only in (False, True):
        repeated = block(tokens.repeat(G, 1, 1), prefix, cls_only=cls_only)
        shared = block.forward_shared(tokens, prefix, cls_only=cls_only)
        torch.testing.assert_close(shared, repeated, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("branches", [0, 1, G])
def test_cls_only_equals_full(
    backbone: Backbone, tokens: Tensor, branches: int, bias: bool
) -> None:
    """With no prompts, with one branch's, with two's; slopes too."""
    block = backbone.blocks[-1]
    if not bias:
        block.qkv.bias = None
    x = tokens.repeat(max(1, branches), 1, 1).requires_grad_()
    prompts = make_prompts(backbone, branches)[-1] if branches else None
    prefix = None if prompts is None else block.prefix(prompts)
    cls = block(x, prefix, cls_only=True)
    assert cls.shape == (len(x), 1, backbone.width)
    whole = block(x, prefix)[:, :1]
    torch.testing.assert_close(cls, whole, atol=1e-5, rtol=1e-5)
    weight = torch.randn(cls.shape, generator=torch.Generator().manual_seed(4))
    wanted = [x] if prompts is None else [x, prompts]
    found = torch.autograd.grad((cls * weight).sum(), wanted, retain_graph=True)
    expected = torch.autograd.grad((whole * weight).sum(), wanted)
    for mine, theirs in zip(found, expected, strict=True):
        bound = 1e-5 * float(theirs.abs().max())
        torch.testing.assert_close(mine, theirs, atol=bound, rtol=1e-4)


def test_batch_that_branches_do_not_divide(backbone: Backbone, tokens: Tensor) -> None:
    block = backbone.blocks[0]
    with pytest.raises(ValueError, match="3 rows does not divide into 2"):
        block(tokens, block.prefix(make_prompts(backbone, G)[0]))


@pytest.mark.parametrize(("queries", "keys"), [(1, 9), (7, FEW_KEYS), (7, FEW_KEYS + 1)])
def test_attention_is_softmax_of_scaled_products(queries: int, keys: int) -> None:
    generator = torch.Generator().manual_seed(5)
    q = torch.randn(2, 3, queries, 4, generator=generator)
    k, v = torch.randn(2, 2, 3, keys, 4, generator=generator)
    expected = torch.empty_like(q)
    for row in range(2):
        for head in range(3):
            for i in range(queries):
                scores = [float(q[row, head, i] @ k[row, head, j]) / 2 for j in range(keys)]
                weights = torch.tensor(scores).softmax(0)
                expected[row, head, i] = sum(
                    w * x for w, x in zip(weights, v[row, head], strict=True)
                )
    torch.testing.assert_close(attention(q, k, v), expected, atol=1e-6, rtol=1e-5)
