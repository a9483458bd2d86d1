"""The two branches: projected logits, folding, parameter counts, what is trained."""

import dataclasses

import pytest
import torch
from torch import Tensor
from transformers import ViTConfig

from d2cp.backbone import backbone_from_config
from d2cp.config.debias import DebiasConfig
from d2cp.debias.dual_branch import DualBranch, PromptClassifier
from d2cp.debias.parameter_count import ParameterCount
from d2cp.debias.prompts import prompted_features
from debias_tiny import CONFIG, backbone

IMAGES = torch.rand(5, 3, 28, 28, generator=torch.Generator().manual_seed(0))


def dual(config: DebiasConfig = CONFIG, classes: int = 3, values: int = 2) -> DualBranch:
    return DualBranch.new(backbone(), classes, values, config, seed=0)


def literal_logits(model: DualBranch, images: Tensor) -> tuple[Tensor, Tensor]:
    """W P0 h with the D x D projector written out."""

    def projector(weight: Tensor) -> Tensor:
        return torch.eye(weight.shape[1]) - torch.linalg.pinv(weight) @ weight

    h_y, h_a = prompted_features(backbone(), model.prompts, images)
    p_y, p_a = projector(model.head_y.weight), projector(model.head_a.weight)
    return model.head_y(h_y @ p_a), model.head_a(h_a @ p_y)


@pytest.mark.parametrize("projector_grad", [False, True])
def test_logits_are_those_of_the_cross_projection(projector_grad: bool) -> None:
    model = dual(dataclasses.replace(CONFIG, projector_grad=projector_grad))
    with torch.no_grad():
        for found, expected in zip(
            model(backbone(), IMAGES), literal_logits(model, IMAGES), strict=True
        ):
            assert torch.allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("rank", ["full", "difference"])
@pytest.mark.parametrize("bias", [True, False])
def test_folded_equals_unfolded(rank: str, bias: bool) -> None:
    config = dataclasses.replace(CONFIG, projection_rank=rank, head_bias=bias, head_init=0.3)
    model = dual(config)
    with torch.no_grad():
        logits_y, logits_a = model(backbone(), IMAGES)
        assert torch.allclose(model.classifier()(backbone(), IMAGES), logits_y, atol=1e-5)
        assert torch.allclose(model.shortcut()(backbone(), IMAGES), logits_a, atol=1e-5)
    assert logits_y.shape == (5, 3) and logits_a.shape == (5, 2)


def test_a_head_gets_no_data_gradient_inside_the_other_row_space() -> None:
    model = dual(dataclasses.replace(CONFIG, head_init=0.3))
    model(backbone(), IMAGES)[0].square().sum().backward()
    gradient = model.head_y.weight.grad
    assert gradient is not None and gradient.abs().max() > 1e-3
    assert (gradient @ model.head_a.weight.T).abs().max() < 1e-4
    assert model.head_a.weight.grad is None  # the projector is detached by default


def test_projector_gradient_reaches_the_other_head() -> None:
    model = dual(dataclasses.replace(CONFIG, projector_grad=True))
    model(backbone(), IMAGES)[0].square().sum().backward()
    assert model.head_a.weight.grad is not None
    assert model.head_a.weight.grad.abs().max() > 0


@pytest.mark.parametrize("broken", ["zero", "deficient"])
@pytest.mark.parametrize("projector_grad", [False, True])
def test_degenerate_heads_stay_finite(broken: str, projector_grad: bool) -> None:
    model = dual(dataclasses.replace(CONFIG, projector_grad=projector_grad))
    with torch.no_grad():
        model.head_a.weight[1] = 0 if broken == "zero" else model.head_a.weight[0]
        if broken == "zero":
            model.head_a.weight.zero_()
    logits_y, logits_a = model(backbone(), IMAGES)
    (logits_y.sum() + logits_a.sum()).backward()
    assert torch.isfinite(logits_y).all() and torch.isfinite(logits_a).all()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize(("length", "branch", "share"), [(10, 93_698, 0.11), (20, 185_858, 0.22)])
def test_parameter_counts_at_vit_b16(length: int, branch: int, share: float) -> None:
    with torch.device("meta"):
        vit = backbone_from_config(ViTConfig(image_size=224, patch_size=16))
    config = DebiasConfig(prompt_length=length)
    model = DualBranch.new(vit, 2, 2, config, seed=0)
    count = ParameterCount.of(model, vit.parameter_count)
    assert (count.branch, count.trained) == (branch, 2 * branch)
    assert round(100 * count.branch / count.backbone, 2) == share
    assert f"{branch:,} ({share:.2f}%)" in str(count) and f"{2 * branch:,}" in str(count)
    single = PromptClassifier.new(vit, 2, config, seed=0)
    assert ParameterCount.of(single, vit.parameter_count).trained == branch


def test_state_holds_what_was_trained_and_nothing_else() -> None:
    names = {"prompts", "head_y.weight", "head_y.bias", "head_a.weight", "head_a.bias"}
    assert set(dual().state_dict()) == names
