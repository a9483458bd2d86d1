"""Tiny random configurations of every supported family."""

from __future__ import annotations

from typing import Any

from transformers import (
    CLIPVisionConfig,
    DeiTConfig,
    Dinov2Config,
    Dinov2WithRegistersConfig,
    ViTConfig,
)

TINY: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "image_size": 28,
    "patch_size": 7,
}
CONFIGS: dict[str, Any] = {
    "vit": ViTConfig(**TINY, intermediate_size=48),
    "vit without QKV bias": ViTConfig(**TINY, intermediate_size=48, qkv_bias=False),
    "deit": DeiTConfig(**TINY, intermediate_size=48),
    "dinov2": Dinov2Config(**TINY, mlp_ratio=2),
    "dinov2 with SwiGLU": Dinov2Config(**TINY, mlp_ratio=2, use_swiglu_ffn=True),
    "dinov2 with registers": Dinov2WithRegistersConfig(**TINY, mlp_ratio=2, num_register_tokens=3),
    "clip": CLIPVisionConfig(**TINY, intermediate_size=48),
}
