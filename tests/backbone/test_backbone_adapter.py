"""The adapter computes what transformers computes, for every family and at any size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from d2cp.backbone import Backbone, backbone_from_config, load_backbone
from d2cp.backbone.families import family_of
from d2cp.errors import BackboneError


def adapt(model: nn.Module, config: Any) -> Backbone:
    family = family_of(config.model_type, "test")
    return Backbone(model, config, family, "test", family.normalisation)


def library_output(model: Any, family: str, pixels: Tensor) -> tuple[Tensor, Tensor]:
    """All tokens as the library returns them, and CLS after the final norm."""
    options = {} if family.startswith("dinov2") else {"interpolate_pos_encoding": True}
    output = model(pixel_values=pixels, **options)
    if family == "clip_vision_model":
        return model.post_layernorm(output.last_hidden_state), output.pooler_output
    return output.last_hidden_state, output.last_hidden_state[:, 0]


@pytest.mark.parametrize("size", [(28, 28), (42, 42), (21, 35)], ids=str)
def test_forward_equals_the_library(
    library_model: nn.Module, config: Any, size: tuple[int, int]
) -> None:
    pixels = torch.randn(2, 3, *size, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        tokens, cls = library_output(library_model, config.model_type, pixels)
        backbone = adapt(library_model, config)
        torch.testing.assert_close(backbone(pixels), tokens, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(backbone.features(pixels), cls, atol=1e-5, rtol=1e-5)


def test_round_trip_through_a_folder(library_model: Any, config: Any, tmp_path: Path) -> None:
    pixels = torch.randn(2, 3, 28, 28, generator=torch.Generator().manual_seed(2))
    library_model.save_pretrained(tmp_path)
    loaded = load_backbone(tmp_path)
    assert torch.equal(loaded(pixels), adapt(library_model, config)(pixels))
    assert (loaded.width, loaded.depth, loaded.heads) == (32, 3, 4)
    assert (loaded.patch_size, loaded.image_size) == (7, 28)
    family = family_of(config.model_type, "test")
    assert (loaded.family, (loaded.mean, loaded.std)) == (family.name, family.normalisation)


def test_backbone_is_frozen_and_stays_in_eval_mode(config: Any) -> None:
    backbone = backbone_from_config(config).train()
    assert not any(module.training for module in backbone.modules())
    assert not any(parameter.requires_grad for parameter in backbone.parameters())


def test_random_weights_depend_on_the_seed_alone(config: Any) -> None:
    pixels = torch.ones(1, 3, 28, 28)
    torch.manual_seed(11)
    before = torch.get_rng_state()
    first = backbone_from_config(config, seed=3)(pixels)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first, backbone_from_config(config, seed=3)(pixels))
    assert not torch.equal(first, backbone_from_config(config, seed=4)(pixels))


def test_size_that_patches_do_not_divide(config: Any) -> None:
    with pytest.raises(BackboneError, match=r"30×28.*\n.*7 divides"):
        backbone_from_config(config).embed(torch.zeros(1, 3, 30, 28))


def test_normalise_is_mean_and_std_of_the_family(config: Any) -> None:
    backbone = backbone_from_config(config)
    pixels = torch.rand(2, 3, 5, 4)
    normal = backbone.normalise(pixels)
    assert normal.shape == (2, 3, 5, 4)
    assert normal.dtype == torch.float32
    for c in range(3):
        expected = (pixels[:, c] - backbone.mean[c]) / backbone.std[c]
        torch.testing.assert_close(normal[:, c], expected)


def test_parameters_of_vit_b16() -> None:
    from transformers import ViTConfig

    with torch.device("meta"):
        backbone = backbone_from_config(ViTConfig())
    # 85,798,656: the ViT-B/16 without pooler, of which 93,698 prompt parameters are 0.109%.
    assert backbone.parameter_count == 85_798_656
