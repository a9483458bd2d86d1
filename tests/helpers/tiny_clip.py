"""A tiny whole CLIP with random weights, in a folder as a person would have one."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from transformers import CLIPConfig, CLIPModel, CLIPTextConfig, CLIPVisionConfig

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


def write_clip(folder: Path) -> Path:
    """Images of 28 pixels, texts of 40 tokens."""
    words = write_tokenizer(folder)
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
        CLIPModel(config).save_pretrained(folder)
    return folder
