"""Key/value prefixes are VPT-deep: equal to concatenate-and-drop over the library's own layers."""

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from d2cp.backbone import Backbone, load_backbone
from d2cp.debias.prompts import init_prompts, prompt_mask, prompted_features
from debias_tiny import library_model

FAMILIES = ["vit", "dinov2", "clip"]


def plain_vpt(model: nn.Module, family: str, prompts: Tensor, pixels: Tensor) -> Tensor:
    """Concatenate [CLS, prompts, patches] before every layer, drop the prompts after it."""
    length = prompts.shape[1]
    x = model.embeddings(pixels)
    if family == "clip":
        x = model.pre_layrnorm(x)
    layers = {"vit": lambda: model.layers, "dinov2": lambda: model.encoder.layer}
    for layer, own in zip(layers.get(family, lambda: model.encoder.layers)(), prompts, strict=True):
        tokens = torch.cat([x[:, :1], own.expand(len(x), -1, -1), x[:, 1:]], dim=1)
        out = layer(tokens, attention_mask=None) if family == "clip" else layer(tokens)
        out = out[0] if isinstance(out, tuple) else out
        x = torch.cat([out[:, :1], out[:, 1 + length :]], dim=1)
    norm = model.post_layernorm if family == "clip" else model.layernorm
    return norm(x)[:, 0]


def wrapped(model: nn.Module, tmp_path: Path) -> Backbone:
    model.save_pretrained(tmp_path)
    return load_backbone(tmp_path)


@pytest.mark.parametrize("family", FAMILIES)
def test_equals_concatenate_and_drop(family: str, tmp_path: Path) -> None:
    model = library_model(family)
    backbone = wrapped(model, tmp_path)
    generator = torch.Generator().manual_seed(0)
    prompts = torch.randn(2, 3, 5, 32, generator=generator).requires_grad_()
    images = torch.rand(4, 3, 28, 28, generator=generator)
    direction = torch.randn(2, 4, 32, generator=generator)
    features = prompted_features(backbone, prompts, images)
    (gradient,) = torch.autograd.grad((features * direction).sum(), prompts)
    pixels = backbone.normalise(images)
    plain = torch.stack([plain_vpt(model, family, branch, pixels) for branch in prompts])
    (expected,) = torch.autograd.grad((plain * direction).sum(), prompts)
    assert torch.allclose(features, plain, atol=1e-5)
    assert torch.allclose(gradient, expected, atol=1e-5 * max(1, expected.abs().max().item()))
    assert expected.abs().max() > 1e-2  # a gradient worth comparing


def test_branches_do_not_mix(tmp_path: Path) -> None:
    backbone = wrapped(library_model("vit"), tmp_path)
    prompts = init_prompts(2, 3, 5, 32, 7, seed=0).requires_grad_()
    images = torch.rand(4, 3, 28, 28)
    both = prompted_features(backbone, prompts, images)
    alone = prompted_features(backbone, prompts[1:], images)
    assert torch.allclose(both[1], alone[0], atol=1e-5)
    (gradient,) = torch.autograd.grad(both[1].sum(), prompts)
    assert gradient[0].abs().max() == 0 and gradient[1].abs().max() > 0


def test_frozen_backbone_holds_no_gradient(tmp_path: Path) -> None:
    backbone = wrapped(library_model("dinov2"), tmp_path)
    prompts = init_prompts(1, 3, 5, 32, 7, seed=0).requires_grad_()
    prompted_features(backbone, prompts, torch.rand(2, 3, 28, 28)).sum().backward()
    assert prompts.grad is not None
    assert all(not p.requires_grad and p.grad is None for p in backbone.parameters())


def test_initialisation_and_dropout() -> None:
    prompts = init_prompts(2, 12, 10, 768, 16, seed=0)
    assert prompts.abs().max() <= math.sqrt(6 / (3 * 256 + 768)) == pytest.approx(0.0625)
    assert prompts.std() == pytest.approx(0.0625 / math.sqrt(3), rel=0.01)
    mask = prompt_mask((2, 12, 10, 768), 0.1, seed=0, step=3)
    assert mask.mean() == pytest.approx(1, abs=0.01)
    assert mask.unique().tolist() == pytest.approx([0.0, 1 / 0.9])
    assert torch.equal(mask, prompt_mask((2, 12, 10, 768), 0.1, seed=0, step=3))
    assert not torch.equal(mask, prompt_mask((2, 12, 10, 768), 0.1, seed=0, step=4))
    assert not torch.equal(mask[0], mask[1])
