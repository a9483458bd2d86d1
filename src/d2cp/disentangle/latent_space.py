"""Where diffusion runs: pixels folded into channels (pixel-unshuffle), or VQ latents."""

from __future__ import annotations

from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor


class Space(Protocol):
    """Images in [−1, 1], [B,3,H,W], to latents and back."""

    channels: int
    side: int
    quantises: bool

    def encode(self, images: Tensor) -> Tensor: ...

    def decode(self, latents: Tensor, *, quantise: bool = True) -> Tensor: ...


class PixelSpace:
    """Blocks of `factor`×`factor` pixels become channels: no autoencoder, nothing is lost."""

    quantises = False

    def __init__(self, size: int, factor: int) -> None:
        self.factor, self.channels, self.side = factor, 3 * factor**2, size // factor

    def encode(self, images: Tensor) -> Tensor:
        return F.pixel_unshuffle(images, self.factor)

    def decode(self, latents: Tensor, *, quantise: bool = True) -> Tensor:
        """There is no codebook here: `quantise` changes nothing."""
        return F.pixel_shuffle(latents, self.factor).clamp(-1, 1)


def to_images(pixels: Tensor) -> Tensor:
    """uint8 [B,H,W,3] to float [B,3,H,W] in [−1, 1]."""
    return pixels.permute(0, 3, 1, 2).to(torch.float32).div(127.5).sub(1).contiguous()


def to_pixels(images: Tensor) -> Tensor:
    """float [B,3,H,W] in [−1, 1] to uint8 [B,H,W,3]."""
    scaled = images.clamp(-1, 1).add(1).mul(127.5).round()
    return scaled.to(torch.uint8).permute(0, 2, 3, 1).contiguous()
