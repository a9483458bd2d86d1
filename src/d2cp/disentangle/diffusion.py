"""The mathematics of diffusion: schedule, forward noise, ε-loss, DDIM steps. Pure functions."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

BETAS = (0.0015, 0.0155)  # first and last, EncDiff's code


def alphas_cumprod(schedule: str, timesteps: int) -> Tensor:
    """ᾱ_t for t = 0 … T−1: `cosine` (EncDiff's paper) or √β-linear (EncDiff's code)."""
    if schedule == "cosine":
        t = torch.arange(timesteps + 1, dtype=torch.float64) / timesteps
        bar = torch.cos((t + 0.008) / 1.008 * math.pi / 2) ** 2
        betas = (1 - bar[1:] / bar[:-1]).clamp(max=0.999)
    else:
        first, last = (beta**0.5 for beta in BETAS)
        root = torch.linspace(first, last, timesteps, dtype=torch.float64)
        betas = root**2
    return torch.cumprod(1 - betas, dim=0).float()


def _per_image(values: Tensor, like: Tensor) -> Tensor:
    return values.reshape(-1, *(1,) * (like.ndim - 1))


def add_noise(z0: Tensor, noise: Tensor, t: Tensor, alpha_bar: Tensor) -> Tensor:
    """z_t = √ᾱ_t z_0 + √(1−ᾱ_t) ε."""
    bar = _per_image(alpha_bar[t], z0)
    return bar.sqrt() * z0 + (1 - bar).sqrt() * noise


def biased_times(even: Tensor, timesteps: int, bias: float) -> Tensor:
    """t = ⌊T(1 − u^b)⌋ of u in [0, 1): evenly spread at b = 1, noisier above."""
    return (timesteps * (1 - even**bias)).long().clamp(max=timesteps - 1)


def noise_from_z0(z0: Tensor, z_t: Tensor, bar: Tensor) -> Tensor:
    """ε̂ = (z_t − √ᾱ ẑ_0) / √(1−ᾱ)."""
    bar = _per_image(bar, z_t)
    return (z_t - bar.sqrt() * z0) / (1 - bar).sqrt()


def predict_z0(z_t: Tensor, eps: Tensor, bar: Tensor) -> Tensor:
    """ẑ_0 = (z_t − √(1−ᾱ) ε̂) / √ᾱ."""
    return (z_t - (1 - bar).sqrt() * eps) / bar.sqrt()


def min_snr_weight(bar: Tensor, gamma: float) -> Tensor:
    """min(SNR, γ) / SNR, the min-SNR weight of an ε-loss; over γ where that is below 1, so that a
    small γ weighs errors of ẑ_0 alike at all levels that are not nearly pure noise."""
    snr = bar / (1 - bar)
    return snr.clamp(max=gamma) / snr / min(gamma, 1.0)


def noise_loss(predicted: Tensor, noise: Tensor, kind: str, weight: Tensor | None = None) -> Tensor:
    """L_LDM: the error of the predicted noise (MSE, or L1), optionally weighted per image."""
    error = F.mse_loss if kind == "mse" else F.l1_loss
    if weight is None:
        return error(predicted, noise)
    each = error(predicted, noise, reduction="none").flatten(1).mean(1)
    return (each * weight).mean()


def ddim_times(timesteps: int, steps: int) -> list[int]:
    """`steps` times from T−1 down to 0, evenly spaced."""
    count = min(steps, timesteps)
    if count == 1:
        return [timesteps - 1]
    return [round((timesteps - 1) * (1 - i / (count - 1))) for i in range(count)]


def ddim_step(z: Tensor, eps: Tensor, bar_from: Tensor, bar_to: Tensor) -> Tensor:
    """One DDIM step with η = 0, in either direction (inversion goes towards more noise)."""
    z0 = predict_z0(z, eps, bar_from)
    return bar_to.sqrt() * z0 + (1 - bar_to).sqrt() * eps
