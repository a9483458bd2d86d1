"""What differs between the ViT families of transformers: where each keeps its parts.

This is the only place that names a module inside a library model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from d2cp.backbone.block import BlockParts
from d2cp.errors import BackboneError

Triple = tuple[float, float, float]
HALF: tuple[Triple, Triple] = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
IMAGENET: tuple[Triple, Triple] = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
CLIP: tuple[Triple, Triple] = (
    (0.48145466, 0.4578275, 0.40821073),
    (0.26862954, 0.26130258, 0.27577711),
)


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The pieces of one library model."""

    patch: nn.Conv2d
    cls: Tensor  # [1, 1, D]
    positions: Tensor  # [1, special + patches, D]
    distillation: Tensor | None = None  # [1, 1, D], follows CLS, has its own position
    registers: Tensor | None = None  # [1, R, D], follow CLS, have no position
    antialias: bool = False  # when the position table is resampled
    pre_norm: nn.Module | None = None
    final_norm: nn.Module
    blocks: list[BlockParts]


@dataclass(frozen=True, kw_only=True)
class Family:
    name: str
    normalisation: tuple[Triple, Triple]
    model: Callable[[], type[Any]]
    options: dict[str, Any]
    parts: Callable[[Any], Parts]


def _vit_block(layer: Any) -> BlockParts:
    attention = layer.attention
    return BlockParts(
        norm1=layer.layernorm_before,
        query=attention.q_proj,
        key=attention.k_proj,
        value=attention.v_proj,
        out=attention.o_proj,
        norm2=layer.layernorm_after,
        mlp=layer.mlp,
    )


def _vit(model: Any) -> Parts:
    tokens = model.embeddings
    return Parts(
        patch=tokens.patch_embeddings.projection,
        cls=tokens.cls_token,
        positions=tokens.position_embeddings,
        distillation=getattr(tokens, "distillation_token", None),
        final_norm=model.layernorm,
        blocks=[_vit_block(layer) for layer in model.layers],
    )


def _dinov2_block(layer: Any) -> BlockParts:
    attention = layer.attention
    return BlockParts(
        norm1=layer.norm1,
        query=attention.q_proj,
        key=attention.k_proj,
        value=attention.v_proj,
        out=attention.o_proj,
        norm2=layer.norm2,
        mlp=layer.mlp,
        scale1=layer.layer_scale1.lambda1,
        scale2=layer.layer_scale2.lambda1,
    )


def _dinov2(model: Any) -> Parts:
    tokens = model.embeddings
    registers = getattr(tokens, "register_tokens", None)
    return Parts(
        patch=tokens.patch_embeddings.projection,
        cls=tokens.cls_token,
        positions=tokens.position_embeddings,
        registers=registers,
        antialias=registers is not None,
        final_norm=model.layernorm,
        blocks=[_dinov2_block(layer) for layer in model.encoder.layer],
    )


def _clip_block(layer: Any) -> BlockParts:
    attention = layer.self_attn
    return BlockParts(
        norm1=layer.layer_norm1,
        query=attention.q_proj,
        key=attention.k_proj,
        value=attention.v_proj,
        out=attention.out_proj,
        norm2=layer.layer_norm2,
        mlp=layer.mlp,
    )


def _clip(model: Any) -> Parts:
    tokens = model.embeddings
    return Parts(
        patch=tokens.patch_embedding,
        cls=tokens.class_embedding[None, None],
        positions=tokens.position_embedding.weight[None],
        pre_norm=model.pre_layrnorm,
        final_norm=model.post_layernorm,
        blocks=[_clip_block(layer) for layer in model.encoder.layers],
    )


def _class(name: str) -> Callable[[], type[Any]]:
    def load() -> type[Any]:
        import transformers

        found: type[Any] = getattr(transformers, name)
        return found

    return load


_NO_POOLER: dict[str, Any] = {"add_pooling_layer": False}
FAMILIES = {
    "vit": Family(
        name="vit",
        normalisation=HALF,
        model=_class("ViTModel"),
        options=_NO_POOLER,
        parts=_vit,
    ),
    "deit": Family(
        name="deit",
        normalisation=IMAGENET,
        model=_class("DeiTModel"),
        options=_NO_POOLER,
        parts=_vit,
    ),
    "dinov2": Family(
        name="dinov2",
        normalisation=IMAGENET,
        model=_class("Dinov2Model"),
        options={},
        parts=_dinov2,
    ),
    "dinov2_with_registers": Family(
        name="dinov2_with_registers",
        normalisation=IMAGENET,
        model=_class("Dinov2WithRegistersModel"),
        options={},
        parts=_dinov2,
    ),
    "clip_vision_model": Family(
        name="clip_vision_model",
        normalisation=CLIP,
        model=_class("CLIPVisionModel"),
        options={},
        parts=_clip,
    ),
}


def family_of(model_type: str, source: str) -> Family:
    """The family of a configuration's `model_type`; a whole CLIP counts as its vision tower."""
    family = FAMILIES.get("clip_vision_model" if model_type == "clip" else model_type)
    if family is None:
        raise BackboneError(
            f"{source} is a model of type {model_type!r}",
            expected="one of " + ", ".join(["clip", *FAMILIES]),
            remedy="choose a ViT, DeiT, DINOv2 or CLIP checkpoint, or use the embedded backbone",
        )
    return family


def copied(value: Tensor | None) -> nn.Parameter | None:
    """A parameter of our own, so that the library model can be freed."""
    return None if value is None else nn.Parameter(torch.clone(value.detach()))
