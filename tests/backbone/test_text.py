"""Class names through the text tower of a tiny CLIP with random weights."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import CLIPModel

from d2cp.backbone import load_backbone
from d2cp.backbone.text_tower import TextTower, class_text, has_text_encoder
from d2cp.errors import BackboneError
from tiny_clip import write_clip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_clip(tmp_path_factory.mktemp("clip"))


def test_vectors_and_image_embeddings_are_clip_s_own(folder: Path) -> None:
    from transformers import AutoTokenizer

    found = class_text(str(folder), ["land bird", "water_bird"])
    model = CLIPModel.from_pretrained(folder).eval()
    words = ["a photo of a land bird.", "a photo of a water bird."]
    tokens = AutoTokenizer.from_pretrained(folder)(words, padding=True, return_tensors="pt")
    pixels = torch.randn(3, 3, 28, 28, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        whole = model(pixel_values=pixels, **tokens)
        images = found.embed(load_backbone(folder).features(pixels))
    torch.testing.assert_close(found.vectors, whole.text_embeds)
    torch.testing.assert_close(images, whole.image_embeds, atol=1e-5, rtol=1e-4)
    assert (found.vectors[0] - found.vectors[1]).abs().max() > 1e-3


def test_who_has_a_text_encoder(folder: Path, tmp_path: Path) -> None:
    assert has_text_encoder(str(folder))
    assert not has_text_encoder("embedded") and not has_text_encoder(str(tmp_path))


def test_a_folder_without_its_tokenizer_is_told(folder: Path, tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    assert not has_text_encoder(str(tmp_path))
    with pytest.raises(BackboneError, match="tokenizer"):
        class_text(str(tmp_path), ["cat"])


def test_an_image_tower_alone_is_told(folder: Path, tmp_path: Path) -> None:
    CLIPModel.from_pretrained(folder).vision_model.save_pretrained(tmp_path / "images")
    with pytest.raises(BackboneError, match="no text tower"):
        TextTower.load(str(tmp_path / "images"))
    shutil.copytree(folder, tmp_path / "half")
    weights = load_file(folder / "model.safetensors")
    images = {k: v for k, v in weights.items() if not k.startswith("text_model")}
    save_file(images, tmp_path / "half" / "model.safetensors", {"format": "pt"})
    with pytest.raises(BackboneError, match=r"weights of .* are absent, the first: text_model"):
        TextTower.load(str(tmp_path / "half"))


def test_many_texts_are_as_each_alone_and_long_ones_are_cut(folder: Path) -> None:
    tower = TextTower.load(str(folder))
    texts = ["a" * n for n in range(1, 71)]
    assert tower.limit == 40
    assert [len(found) for found in tower.tokens(texts)] == [n + 2 for n in range(1, 71)]
    together = tower.encode(texts).vectors
    alone = torch.cat([tower.encode([text]).vectors for text in texts])
    torch.testing.assert_close(together, alone)
    torch.testing.assert_close(together[-1], together[-2])


def test_weights_that_are_not_finite_and_a_foreign_tokenizer_are_told(
    folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(folder, tmp_path / "damaged")
    weights = load_file(folder / "model.safetensors")
    weights["text_projection.weight"][0, 0] = float("nan")
    save_file(weights, tmp_path / "damaged" / "model.safetensors", {"format": "pt"})
    with pytest.raises(BackboneError, match=r"text_projection.weight .* not finite"):
        TextTower.load(str(tmp_path / "damaged"))
    shutil.copytree(folder, tmp_path / "foreign")
    vocabulary = json.loads((folder / "vocab.json").read_text())
    more = {**vocabulary, "ab</w>": len(vocabulary)}
    (tmp_path / "foreign" / "vocab.json").write_text(json.dumps(more))
    with pytest.raises(BackboneError, match="has 57 tokens, the text tower 56"):
        TextTower.load(str(tmp_path / "foreign"))
