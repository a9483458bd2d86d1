import json
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from transformers import ViTConfig

from d2cp.backbone import Backbone, backbone_from_config
from d2cp.debias.adapters import Adapter, AdapterClassifier
from d2cp.debias.dual_branch import PromptClassifier
from d2cp.evaluate.gradcam import (
    changed_rows,
    class_maps,
    contrast,
    grad_cam,
    overlay,
    write_gradcam,
)


def test_map_is_the_relu_of_the_weighted_sum() -> None:
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randn(3, 6, 5, generator=generator)
    gradients = torch.randn(3, 6, 5, generator=generator)
    maps = grad_cam(tokens, gradients, (2, 3))
    for b in range(3):
        mean = [sum(tokens[b, n, d].item() for n in range(6)) / 6 for d in range(5)]
        raw = [
            max(
                0.0,
                sum(
                    gradients[b, n, d].item() * (tokens[b, n, d].item() - mean[d]) for d in range(5)
                ),
            )
            for n in range(6)
        ]
        wanted = torch.tensor(raw).reshape(2, 3) / max(raw)
        torch.testing.assert_close(maps[b], wanted, rtol=1e-5, atol=1e-6)


def test_no_positive_patch_gives_an_empty_map() -> None:
    tokens = torch.tensor([[[1.0], [1.0], [1.0], [5.0]]])
    gradients = torch.tensor([[[0.0], [0.0], [0.0], [-1.0]]])
    assert grad_cam(tokens, gradients, (2, 2)).abs().sum() == 0


def test_contrast_ignores_a_constant_added_to_every_logit() -> None:
    logits = torch.tensor([[1.0, 4.0, 1.0]])
    answers = torch.tensor([1])
    assert contrast(logits, answers).item() == 3.0
    torch.testing.assert_close(contrast(logits + 100, answers), contrast(logits, answers))


def _reader_of_red_and_blue() -> tuple[Backbone, PromptClassifier]:
    """A two-block ViT that does one thing: a patch's red goes to channel 0, its blue to channel 1,
    attention is even, and class 0 is read from red, class 1 from blue."""
    backbone = backbone_from_config(
        ViTConfig(
            hidden_size=8,
            num_hidden_layers=2,
            num_attention_heads=1,
            intermediate_size=8,
            image_size=12,
            patch_size=4,
        )
    )
    with torch.no_grad():
        for parameter in backbone.parameters():
            if parameter.dim() > 1:
                parameter.zero_()
        patch = next(
            p for n, p in backbone.named_parameters() if n.startswith("patch") and p.dim() == 4
        )
        patch[0, 0], patch[1, 2] = 1 / 16, 1 / 16
        for block in backbone.blocks:
            block.qkv.weight[16:] = torch.eye(8)
            block.out.weight.copy_(torch.eye(8))
    model = PromptClassifier(torch.zeros(1, 2, 3, 8), torch.nn.Linear(8, 2, bias=False))
    with torch.no_grad():
        model.head.weight.zero_()
        model.head.weight[0, 0] = model.head.weight[1, 1] = 1
    return backbone, model


def _red_and_blue() -> np.ndarray:
    """Grey, with a red patch in the upper left corner and a blue one in the lower right."""
    image = np.full((1, 12, 12, 3), 128, dtype=np.uint8)
    image[0, :4, :4] = (255, 0, 0)
    image[0, 8:, 8:] = (0, 0, 255)
    return image


def _as_input(pixels: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(pixels).permute(0, 3, 1, 2) / 255


def test_each_class_points_at_its_own_patch() -> None:
    backbone, model = _reader_of_red_and_blue()
    images = _as_input(_red_and_blue().repeat(2, axis=0))
    maps = class_maps(backbone, model, images, torch.tensor([0, 1]))
    assert maps.shape == (2, 3, 3)
    assert maps[0].argmax() == 0 and maps[1].argmax() == 8
    assert maps[0, 2, 2] == 0 and maps[1, 0, 0] == 0
    assert all(p.grad is None for p in model.parameters())


def test_an_adapter_after_the_backbone_is_part_of_what_is_explained() -> None:
    """One that exchanges the channels of red and blue exchanges the maps."""
    backbone, prompted = _reader_of_red_and_blue()
    adapter = Adapter(8, 16, seed=0)
    exchange = torch.zeros(8, 8)
    exchange[0, 0] = exchange[1, 1] = -1
    exchange[0, 1] = exchange[1, 0] = 1
    with torch.no_grad():  # relu(x) - relu(-x) = x, so that the adapter adds `exchange` x
        adapter.down.weight.copy_(torch.cat([torch.eye(8), -torch.eye(8)]))
        adapter.up.weight.copy_(torch.cat([exchange, -exchange], dim=1))
    images = _as_input(_red_and_blue().repeat(2, axis=0))
    model = AdapterClassifier(adapter, prompted.head)
    maps = class_maps(backbone, model, images, torch.tensor([0, 1]))
    assert maps[0].argmax() == 8 and maps[1].argmax() == 0


def test_overlay_is_brighter_where_the_map_is() -> None:
    grey = np.full((12, 12, 3), 100, dtype=np.uint8)
    heat = np.zeros((3, 3), dtype=np.float32)
    heat[0, 0] = 1
    picture = np.asarray(overlay(grey, heat, side=30))
    assert picture.shape == (30, 30, 3)
    assert picture[2, 2].sum() > picture[27, 27].sum() + 150


def test_changed_rows_come_from_every_kind_of_change() -> None:
    y = np.array([0] * 10 + [1] * 10)
    before = np.array([1] * 8 + [0] * 2 + [0, 1] + [1] * 8)
    after = np.array([0] * 8 + [0, 1] + [1, 0] + [1] * 8)
    pseudo = np.zeros(20, dtype=np.int64)
    assert changed_rows(y, before, after, pseudo, limit=4).tolist() == [9, 0, 11, 10]
    assert changed_rows(y, y, y, pseudo).tolist() == []


def test_pairs_are_written_with_their_list(tmp_path: Path) -> None:
    backbone, model = _reader_of_red_and_blue()
    pixels = _red_and_blue()
    record = {"row": 7, "id": "x", "y": 1, "pseudo": 0, "erm": 0, "d2cp": 1}
    write_gradcam(tmp_path / "g", backbone, model, model, _as_input(pixels), pixels, [record])
    (listed,) = json.loads((tmp_path / "g" / "gradcam.json").read_text())
    assert {k: listed[k] for k in record} == record
    pictures = []
    for name in (listed["before"], listed["after"]):
        with Image.open(tmp_path / "g" / name) as picture:
            pictures.append(np.asarray(picture).astype(int))
    corner = slice(0, 20)
    assert pictures[0][corner, corner].mean() > pictures[1][corner, corner].mean()
