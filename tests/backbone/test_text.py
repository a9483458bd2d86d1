"""Class names through the text tower of a tiny CLIP with random weights."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from transformers import CLIPConfig, CLIPModel, CLIPTextConfig, CLIPVisionConfig

from d2cp.backbone import load_backbone
from d2cp.backbone.text_tower import class_text, has_text_encoder
from d2cp.errors import BackboneError

START, END = "<|startoftext|>", "<|endoftext|>"


def write_tokenizer(folder: Path) -> int:
    """Letter by letter: CLIP's files with a vocabulary of single letters and no merges."""
    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)] + ["."]
    vocabulary = [*letters, *(f"{letter}</w>" for letter in letters), START, END]
    (folder / "vocab.json").write_text(json.dumps({t: i for i, t in enumerate(vocabulary)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "CLIPTokenizer", "model_max_length": 40})
    )
    return len(vocabulary)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("clip")
    words = write_tokenizer(made)
    shared = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2}
    shared |= {"num_attention_heads": 2}
    text = CLIPTextConfig(
        **shared,
        vocab_size=words,
        max_position_embeddings=40,
        bos_token_id=words - 2,
        eos_token_id=words - 1,
        pad_token_id=words - 1,
    )
    vision = CLIPVisionConfig(**{**shared, "hidden_size": 24}, image_size=28, patch_size=14)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = CLIPConfig(
            text_config=text.to_dict(), vision_config=vision.to_dict(), projection_dim=12
        )
        CLIPModel(config).save_pretrained(made)
    return made


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
