"""The concept model: image → K scalars → K tokens → conditioned denoiser."""

from __future__ import annotations

from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from d2cp.config.disentangle import DisentangleConfig
from d2cp.core.parts import in_parts
from d2cp.core.rng import seeded
from d2cp.disentangle.batch_norm import BatchNorm1d
from d2cp.disentangle.denoiser import Sketch, build_denoiser
from d2cp.disentangle.diffusion import alphas_cumprod, noise_from_z0
from d2cp.disentangle.encoder import build_encoder
from d2cp.disentangle.given_scalars import GivenScalars
from d2cp.disentangle.guide import Guide
from d2cp.disentangle.latent_space import Space
from d2cp.disentangle.tokens import build_tokens


class ConceptModel(nn.Module):
    """EncDiff, with the last scalars taken from the guide where there is one, then from `given`.

    The space, the guide and what is given are finished, and frozen, before the rest trains.
    """

    latent_mean: Tensor
    latent_std: Tensor
    alpha_bar: Tensor

    def __init__(
        self,
        config: DisentangleConfig,
        space: Space,
        guide: Guide | None,
        seed: int,
        given: GivenScalars | None = None,
    ) -> None:
        super().__init__()
        self.config, self.space, self.guide, self.given = config, space, guide, given
        with seeded(seed, "disentangle/init"):
            free = config.concepts - self.guided
            self.encoder = build_encoder(
                config.encoder.kind, config.size, free, config.encoder.width, config.encoder.hidden
            )
            self.norm = BatchNorm1d(free, affine=False) if config.scalar_norm else nn.Identity()
            self.tokens = build_tokens(
                config.tokens.map,
                config.concepts,
                config.tokens.hidden,
                config.tokens.dim,
                config.tokens.gain,
            )
            self.denoiser = build_denoiser(config, space.channels, space.side)
            self.sketch = (
                Sketch(config.concepts, config.tokens.dim, config.unet.sketch, space.side)
                if config.unet.sketch
                else None
            )
        self.register_buffer("latent_mean", torch.zeros(()))
        self.register_buffer("latent_std", torch.ones(()))
        bar = alphas_cumprod(config.noise_schedule, config.timesteps)
        self.register_buffer("alpha_bar", bar)

    @property
    def guided(self) -> int:
        """How many of the scalars, the last ones, come from the guide or were given."""
        guide = 0 if self.guide is None else self.guide.concepts
        return guide + (0 if self.given is None else self.given.count)

    def scalars(self, images: Tensor, guided: Tensor) -> Tensor:
        """S (Eq. weight_definition): the encoder's scalars, then the guide's and given ones."""
        return torch.cat([self.norm(self.encoder(images)), guided], dim=1)

    def split(self, scalars: Tensor) -> tuple[Tensor, Tensor]:
        """[B,K] to the encoder's scalars and the others."""
        free = self.config.concepts - self.guided
        return scalars[:, :free], scalars[:, free:]

    def guided_scalars(self, images: Tensor, rows: NDArray[np.int64]) -> Tensor:
        """The guide's scalars of these rows of the table, then the given ones: [B,G]."""
        found = images.new_zeros(len(images), 0)
        if self.guide is not None:
            found = self.guide.scalars(images, rows)
        return found if self.given is None else torch.cat([found, self.given(rows)], dim=1)

    def concept_tokens(self, scalars: Tensor) -> Tensor:
        """Φ(S) (Eq. mapping_function): [B,K] to [B,K,D]."""
        return cast(Tensor, self.tokens(scalars))

    def denoise(self, z_t: Tensor, t: Tensor, tokens: Tensor) -> Tensor:
        """ε_θ(z_t, t, Φ(S))."""
        z = z_t if self.sketch is None else torch.cat([z_t, self.sketch(tokens)], dim=1)
        out = cast(Tensor, self.denoiser(z, t, tokens, return_dict=False)[0])
        return noise_from_z0(out, z_t, self.alpha_bar[t]) if self.config.predict == "z0" else out

    def forward(
        self, images: Tensor, guided: Tensor, z_t: Tensor, t: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The predicted noise, and the scalars it was conditioned on."""
        scalars = self.scalars(images, guided)
        tokens = self.concept_tokens(scalars)
        drawing = [self.denoiser] if self.sketch is None else [self.denoiser, self.sketch]
        weights = [p for part in drawing for p in part.parameters()]
        return in_parts(self.denoise, (z_t, t, tokens), weights), scalars

    def to_latents(self, images: Tensor) -> Tensor:
        """Images to latents of about unit variance, where the noise schedule is meant to work."""
        return (self.space.encode(images) - self.latent_mean) / self.latent_std

    def to_images(self, latents: Tensor, *, quantise: bool = True) -> Tensor:
        """The inverse. A VQ space snaps the UNSCALED latents to its codebook unless told not to."""
        return self.space.decode(latents * self.latent_std + self.latent_mean, quantise=quantise)

    def latent_bounds(self) -> tuple[float, float]:
        """The least and greatest value a latent can take; unbounded in a VQ space."""
        if self.space.quantises:
            return -float("inf"), float("inf")
        mean, std = float(self.latent_mean), float(self.latent_std)
        return (-1 - mean) / std, (1 - mean) / std
