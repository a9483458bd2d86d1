"""The denoising U-Net ε_θ(z_t, t, Φ(S)): diffusers' network, attending to the concept tokens."""

from __future__ import annotations

from diffusers import UNet2DConditionModel
from diffusers.models.attention_processor import AttnProcessor
from torch import Tensor, nn

from d2cp.config.disentangle import DisentangleConfig
from d2cp.core.device import process_state

FEW_KEYS = 64
"""Up to this many places, attention on a CPU is quicker written out than in the fused kernel."""


class Sketch(nn.Module):
    """Σ_k P_k(E_k): each token's linear picture [C,H,W], summed over the concepts."""

    def __init__(self, concepts: int, dim: int, channels: int, side: int) -> None:
        super().__init__()
        self.shape = (channels, side, side)
        self.pictures = nn.Linear(concepts * dim, channels * side**2)

    def forward(self, tokens: Tensor) -> Tensor:
        drawn: Tensor = self.pictures(tokens.flatten(1))
        return drawn.reshape(-1, *self.shape)


def build_denoiser(config: DisentangleConfig, channels: int, side: int) -> UNet2DConditionModel:
    levels = range(len(config.unet.channels))
    down = ["CrossAttnDownBlock2D" if i in config.unet.attention else "DownBlock2D" for i in levels]
    up = ["CrossAttnUpBlock2D" if i in config.unet.attention else "UpBlock2D" for i in levels]
    unet = UNet2DConditionModel(
        sample_size=side,
        in_channels=channels + config.unet.sketch,
        out_channels=channels,
        block_out_channels=config.unet.channels,
        layers_per_block=config.unet.layers,
        down_block_types=tuple(down),
        up_block_types=tuple(reversed(up)),
        cross_attention_dim=config.tokens.dim,
        attention_head_dim=config.unet.heads,  # diffusers means the number of heads here
        norm_num_groups=min(32, config.unet.channels[0] // 4),
        resnet_time_scale_shift="scale_shift",
    )
    if side**2 <= FEW_KEYS and process_state().device.type == "cpu":
        unet.set_attn_processor(AttnProcessor())
    return unet
