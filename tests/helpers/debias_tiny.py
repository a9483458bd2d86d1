"""Tiny backbones of every family, tiny labels and a store: small enough to train in a test."""

from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import (
    CLIPVisionConfig,
    CLIPVisionModel,
    Dinov2Config,
    Dinov2Model,
    ViTConfig,
    ViTModel,
)

from d2cp.backbone import Backbone, backbone_from_config
from d2cp.config.debias import DebiasConfig
from d2cp.data import Table, load_table, open_images
from d2cp.data.store import ImageStore
from d2cp.debias.labels import Labels

SIZE = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4}
SIZE |= {"image_size": 28, "patch_size": 7}
CONFIG = DebiasConfig(
    image_size=28, resize=28, flip=False, epochs=2, batch_size=16, prompt_length=3, epoch_size=96
)


def family_config(family: str) -> Any:
    if family == "vit":
        return ViTConfig(intermediate_size=48, **SIZE)
    if family == "dinov2":
        return Dinov2Config(mlp_ratio=2, layerscale_value=0.7, **SIZE)
    return CLIPVisionConfig(intermediate_size=48, **SIZE)


def backbone(family: str = "vit", seed: int = 0) -> Backbone:
    """Random weights, larger than at initialisation so that attention is far from uniform."""
    made = backbone_from_config(family_config(family), seed)
    generator = torch.Generator().manual_seed(seed)
    for p in made.parameters():
        p += 0.15 * torch.randn(p.shape, generator=generator)
    return made


def library_model(family: str) -> nn.Module:
    torch.manual_seed(1)
    config = family_config(family)
    if family == "vit":
        model: nn.Module = ViTModel(config, add_pooling_layer=False)
    elif family == "dinov2":
        model = Dinov2Model(config)
    else:
        model = CLIPVisionModel(config)
    with torch.no_grad():
        for p in model.parameters():
            p += 0.15 * torch.randn_like(p)
    return model.eval().requires_grad_(False)


def cmnist(limit: int = 300) -> tuple[Table, ImageStore]:
    table = load_table("cmnist", limit=limit)
    return table, open_images(table, 28)


def labels_of(table: Table, *, seed: int = 0) -> Labels:
    """True colours as pseudo labels and random XRM bits."""
    bits = np.random.default_rng(seed).integers(2, size=(2, len(table)))
    assert table.a is not None
    return Labels(
        y=table.y,
        classes=table.n_classes,
        train=table.rows("train"),
        val=table.rows("val"),
        a=table.a,
        y_xrm=bits[0],
        a_xrm=bits[1],
        true_a=table.a,
    )
