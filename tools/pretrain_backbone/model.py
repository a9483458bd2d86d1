"""The embedded ViT and the linear heads that read shape and colour from its CLS token."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import ViTConfig, ViTModel

from tools.pretrain_backbone.distort import IMAGE

CONFIG = {
    "image_size": IMAGE,
    "patch_size": 7,
    "hidden_size": 128,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "intermediate_size": 512,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
LEVELS = 4
"""Steps of brightness of a channel when a colour is a class."""


class Pretraining(nn.Module):
    """ViT with a head for the glyph class and one for the colours of ink and ground: their six RGB
    values, or two colour classes."""

    def __init__(self, classes: int, colours: int = 6) -> None:
        super().__init__()
        self.vit = ViTModel(ViTConfig(**CONFIG), add_pooling_layer=False)
        width = int(CONFIG["hidden_size"])
        self.glyph = nn.Linear(width, classes)
        self.colour = nn.Linear(width, colours)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Glyph logits and colours of RGB images in [0, 1]."""
        cls = self.vit(pixel_values=images * 2 - 1).last_hidden_state[:, 0]
        return self.glyph(cls), self.colour(cls)


def initialise(model: nn.Module, generator: torch.Generator) -> None:
    """Truncated normal 0.02 for weights, zero biases, unit LayerNorms: all from one generator.

    Positions and CLS start at the scale of the embedded patches, else attention cannot tell the
    patches apart for the first hundreds of steps."""
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            nn.init.ones_(module.weight)
            nn.init.zeros_(module.bias)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        elif parameter.ndim > 1:
            token = "position" in name or "cls_token" in name
            nn.init.trunc_normal_(parameter, std=0.2 if token else 0.02, generator=generator)


def colour_error(colours: Tensor, ink: Tensor, ground: Tensor) -> Tensor:
    """Mean squared error of the six RGB values."""
    return F.mse_loss(colours, torch.cat([ink, ground], dim=1))


def colour_class(rgb: Tensor) -> Tensor:
    """Which of LEVELS³ cells a colour [B, 3] in [0, 1] falls into."""
    level = (rgb * LEVELS).long().clamp(max=LEVELS - 1)
    return (level[:, 0] * LEVELS + level[:, 1]) * LEVELS + level[:, 2]


def colour_entropy(colours: Tensor, ink: Tensor, ground: Tensor) -> Tensor:
    """Cross-entropy of the ink's class plus that of the ground's."""
    of_ink, of_ground = colours.chunk(2, dim=1)
    shown = F.cross_entropy(of_ink, colour_class(ink))
    return shown + F.cross_entropy(of_ground, colour_class(ground))
