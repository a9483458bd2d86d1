"""Drawing images from concepts: DDIM with η = 0, so that the noise alone fixes the rest."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from d2cp.core.rng import torch_generator
from d2cp.disentangle.concept_model import ConceptModel
from d2cp.disentangle.diffusion import ddim_step, ddim_times, predict_z0

# Above this time nothing but noise is left, and ẑ_0 divides by almost zero.
LEAST_SIGNAL = 1e-3


def start_noise(model: ConceptModel, rows: NDArray[np.int64], seed: int) -> Tensor:
    """Starting noise of each row: a function of (seed, row)."""
    shape = (model.space.channels, model.space.side, model.space.side)
    each = [
        torch.randn(shape, generator=torch_generator(seed, "disentangle/pictures", int(row)))
        for row in rows
    ]
    return torch.stack(each).to(model.latent_std.device)


def _times(model: ConceptModel) -> list[int]:
    usable = int((model.alpha_bar >= LEAST_SIGNAL).sum())
    return ddim_times(usable, model.config.ddim_steps)


def _predict(model: ConceptModel, z: Tensor, t: int, tokens: Tensor) -> Tensor:
    return model.denoise(z, torch.full((len(z),), t, device=z.device), tokens)


@torch.no_grad()
def sample(model: ConceptModel, tokens: Tensor, noise: Tensor) -> Tensor:
    """Latents z_0 from noise, conditioned on the tokens."""
    z, one = noise, model.alpha_bar.new_ones(())
    times = _times(model)
    low, high = model.latent_bounds()
    for t, following in zip(times, [*times[1:], -1], strict=True):
        bar = model.alpha_bar[t]
        z0 = predict_z0(z, _predict(model, z, t, tokens), bar).clamp(low, high)
        eps = (z - bar.sqrt() * z0) / (1 - bar).sqrt()
        z = ddim_step(z, eps, bar, model.alpha_bar[following] if following >= 0 else one)
    return z


@torch.no_grad()
def invert(model: ConceptModel, images: Tensor, tokens: Tensor) -> Tensor:
    """The noise from which these real images, with their own tokens, would be drawn again."""
    z = model.to_latents(images)
    times = list(reversed(_times(model)))
    before = model.alpha_bar.new_ones(())
    for t in times:
        eps = _predict(model, z, t, tokens)
        z = ddim_step(z, eps, before, model.alpha_bar[t])
        before = model.alpha_bar[t]
    return z


@torch.no_grad()
def draw(model: ConceptModel, scalars: Tensor, noise: Tensor, *, quantise: bool = True) -> Tensor:
    """Images [B,3,H,W] in [−1, 1] of these concepts and this noise."""
    return model.to_images(sample(model, model.concept_tokens(scalars), noise), quantise=quantise)


def swapped(scalars: Tensor, donors: Tensor, concepts: list[int]) -> Tensor:
    """The scalars with those of some concepts taken from the donors."""
    out = scalars.clone()
    out[:, concepts] = donors[:, concepts]
    return out
