"""Where diffusion runs: pixels folded into channels (pixel-unshuffle), or VQ latents."""

from __future__ import annotations

from typing import Protocol

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
