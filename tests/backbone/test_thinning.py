"""Dropping patches: those CLS attends to least, for each branch its own; the same when served."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from d2cp.backbone import Backbone, backbone_from_config
from d2cp.backbone.load import load_backbone
from d2cp.config import load_config
from d2cp.debias.dual_branch import PromptClassifier
from d2cp.debias.prompts import init_prompts, prefixes, prompted_features
from d2cp.errors import BackboneError, ConfigError
from d2cp.evaluate.gradcam import class_maps
from d2cp.pipeline.stages import stage
from debias_tiny import backbone as tiny

PIXELS = torch.rand(3, 3, 28, 28, generator=torch.Generator().manual_seed(2))


@pytest.fixture
def backbone(config: Any) -> Backbone:
    model = backbone_from_config(config)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.2)
    return model


def literal_features(backbone: Backbone, pixels: Tensor, keep: int, layers: Any = None) -> Tensor:
    """One image at a time; attention of CLS written out head by head; the rest as it comes."""
    found = []
    for image in pixels:
        x = backbone.embed(image[None])
        first = x.shape[1] - 16
        for index, block in enumerate(backbone.blocks):
            prefix = None if layers is None else layers[index]
            out = block(x, prefix)
            if index == 1:
                q, k, _ = block.attention_inputs(x)
                before = 0 if prefix is None else prefix[0].shape[-2]
                total = torch.zeros(16)
                for head in range(backbone.heads):
                    keys = k[0, head]
                    if prefix is not None:
                        keys = torch.cat([prefix[0].reshape(-1, before, k.shape[-1])[head], keys])
                    scores = [(q[0, head, 0] @ key).item() / k.shape[-1] ** 0.5 for key in keys]
                    total += torch.tensor(scores).softmax(0)[before + first :]
                best = sorted(range(16), key=lambda n: -total[n])[:keep]
                out = torch.cat([out[:, :first], out[:, [first + n for n in best]]], dim=1)
            x = out
        found.append(backbone.final_norm(x[:, 0])[0])
    return torch.stack(found)


@pytest.mark.parametrize(("share", "keep"), [(0.5, 8), (0.3, 5), (0.01, 1)])
def test_features_are_those_of_the_patches_that_cls_attends_to(backbone, share, keep):
    whole = backbone.features(PIXELS)
    expected = literal_features(backbone, PIXELS, keep)
    found = backbone.thinned(share).features(PIXELS)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert (found - whole).abs().max() > 1e-3
    assert torch.equal(backbone.thinned(1.0).features(PIXELS), whole)


def test_each_branch_keeps_the_patches_that_its_own_prompts_make_it_look_at():
    backbone = tiny().thinned(0.5)
    prompts = (5 * init_prompts(2, 3, 4, 32, 7, seed=0)).requires_grad_()
    both = prompted_features(backbone, prompts, PIXELS)
    for branch in range(2):
        own = prefixes(backbone, prompts[branch : branch + 1])
        expected = literal_features(backbone, backbone.normalise(PIXELS), 8, own)
        torch.testing.assert_close(both[branch], expected, atol=1e-5, rtol=1e-5)
    (slope,) = torch.autograd.grad(both.square().sum(), prompts)
    assert (slope.abs().amax(dim=(2, 3)) > 0).all()


def test_maps_are_empty_where_patches_were_dropped():
    backbone = tiny().thinned(0.25)
    prompts = init_prompts(1, 3, 4, 32, 7, seed=0)
    model = PromptClassifier(prompts, torch.nn.Linear(32, 2))
    maps = class_maps(backbone, model, PIXELS, torch.tensor([0, 1, 0])).flatten(1)
    x, layers = backbone.embed(backbone.normalise(PIXELS)), prefixes(backbone, prompts)
    for index in range(2):
        x, places = backbone.block(index, x, layers[index])
    kept = torch.zeros(3, 16).scatter(1, places, 1.0)
    assert kept.sum() == 12 and (maps[kept == 0] == 0).all() and maps.max() == 1


def test_features_depend_on_it_and_keep_their_identity_without_it():
    of_features = stage("features")
    plain, fewer = (
        load_config("demo", assignments=[f"debias.keep_patches={share}"]) for share in (1, 0.5)
    )
    assert of_features.settings(plain) == ["embedded", 28, 28]
    assert of_features.settings(fewer) == ["embedded", 28, 28, 0.5]
    assert load_backbone("embedded", 0.5).keep_patches == 0.5


def test_shares_that_mean_nothing_are_refused():
    for share in ("0", "1.5", "nan"):
        with pytest.raises(ConfigError, match="keep_patches"):
            load_config("demo", assignments=[f"debias.keep_patches={share}"])
    with pytest.raises(BackboneError, match="keep_patches = 0"):
        tiny().thinned(0)
