"""The VQ autoencoder (f=4) and its training: L1 + codebook + commitment.

EncDiff adds perceptual and adversarial terms; the first needs weights that are not ours to ship.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from diffusers import VQModel
from numpy.typing import NDArray
from torch import Tensor, nn

from d2cp.config.disentangle import DisentangleConfig
from d2cp.core.processes import global_mean, share_of
from d2cp.core.rng import seeded, torch_generator
from d2cp.data.pixels import Stored, signed_view
from d2cp.disentangle.batches import batch_positions
from d2cp.disentangle.concept_loop import Recipe, Watch, fit

STAGE = "disentangle/autoencoder"
PLAIN_SHARE = 0.2
LATENT, LAYERS = 3, 1  # channels of a latent, residual blocks of a level
COMMITMENT = 0.25


class VQSpace(nn.Module):
    """Latents BEFORE quantisation, as EncDiff diffuses them; decoding quantises."""

    quantises = True

    def __init__(self, config: DisentangleConfig) -> None:
        super().__init__()
        levels = len(config.vq.channels)
        self.channels = LATENT
        self.side = config.size // 2 ** (levels - 1)
        self.commitment = COMMITMENT
        self.net = VQModel(
            block_out_channels=config.vq.channels,
            down_block_types=("DownEncoderBlock2D",) * levels,
            up_block_types=("UpDecoderBlock2D",) * levels,
            layers_per_block=LAYERS,
            latent_channels=LATENT,
            vq_embed_dim=LATENT,
            num_vq_embeddings=config.vq.codebook,
            norm_num_groups=min(32, config.vq.channels[0] // 2),
            sample_size=config.size,
        )

    @torch.no_grad()
    def encode(self, images: Tensor) -> Tensor:
        return cast(Tensor, self.net.encode(images).latents)

    @torch.no_grad()
    def decode(self, latents: Tensor, *, quantise: bool = True) -> Tensor:
        out: Tensor = self.net.decode(latents, force_not_quantize=not quantise).sample
        return out.clamp(-1, 1)

    @property
    def codebook(self) -> nn.Parameter:
        return cast(nn.Parameter, self.net.quantize.embedding.weight)

    def forward(self, images: Tensor, quantise: bool) -> tuple[Tensor, Tensor]:
        """The reconstruction and the codebook terms (zero while the codebook is not in use)."""
        latents = self.net.encode(images).latents
        # The codebook keeps a (zero) gradient while it waits: processes that share the work
        # expect one for every weight.
        nearest = latents.detach() + 0 * self.codebook.sum()
        if quantise:
            nearest = quantised(latents, self.codebook)
        codebook = F.mse_loss(nearest, latents.detach())
        commitment = F.mse_loss(latents, nearest.detach())
        through = latents + (nearest - latents).detach()  # gradients pass straight through
        image = self.net.decode(through, force_not_quantize=True).sample
        return image, codebook + self.commitment * commitment


def quantised(latents: Tensor, codebook: Tensor) -> Tensor:
    """Each latent vector's nearest codebook vector."""
    flat = latents.movedim(1, -1)
    index = torch.cdist(flat.reshape(-1, flat.shape[-1]), codebook).argmin(1)
    return F.embedding(index, codebook).reshape(flat.shape).movedim(-1, 1)


def train_autoencoder(
    store: Stored,
    rows: NDArray[np.int64],
    config: DisentangleConfig,
    seed: int,
    accelerator: Accelerator,
    watch: Watch,
) -> VQSpace:
    """A frozen autoencoder. The codebook starts, after a plain fifth of the steps, from latents of
    that step's images: vectors nobody is near would never be used."""
    with seeded(seed, STAGE):
        space = VQSpace(config).to(accelerator.device)
    plain = int(PLAIN_SHARE * config.vq.steps)

    def rows_at(step: int) -> NDArray[np.int64]:
        return rows[batch_positions(seed, STAGE, step, config.vq.batch, len(rows))]

    def loss_at(module: nn.Module, step: int) -> Tensor:
        chosen = rows_at(step)
        if step == plain:
            _start_codebook(space, signed_view(store, chosen).to(accelerator.device), seed)
        chosen = chosen[share_of(config.vq.batch)]
        images = signed_view(store, chosen).to(accelerator.device)
        decoded, codebook_loss = module(images, step >= plain)
        return global_mean(F.l1_loss(decoded, images) + codebook_loss, len(images))

    recipe = Recipe(
        steps=config.vq.steps,
        batch=config.vq.batch,
        settings="disentangle.vq",
        side=config.size,
        lr=config.vq.lr,
        warmup=min(100, config.vq.steps // 10),
    )
    fit(space, loss_at, recipe, accelerator, watch.part("autoencoder"), STAGE, rows_at)
    return space.requires_grad_(False)


@torch.no_grad()
def _start_codebook(space: VQSpace, images: Tensor, seed: int) -> None:
    latents = space.encode(images).movedim(1, -1).reshape(-1, space.channels)
    draw = torch_generator(seed, f"{STAGE}/codebook")
    pick = torch.randint(len(latents), (len(space.codebook),), generator=draw)
    jitter = torch.randn(space.codebook.shape, generator=draw).to(latents.device)
    space.codebook.copy_(latents[pick.to(latents.device)] + 0.01 * latents.std() * jitter)
