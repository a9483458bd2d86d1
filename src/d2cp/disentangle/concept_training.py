"""Training the concept model: space, then guide, then encoder + tokens + denoiser together."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from d2cp.config.disentangle import DisentangleConfig
from d2cp.core.checkpoint import Checkpointer
from d2cp.core.device import make_accelerator
from d2cp.core.processes import global_mean, in_shares, share_of
from d2cp.core.progress import progress as show_progress
from d2cp.core.rng import torch_generator
from d2cp.data.pixels import Stored, signed_view
from d2cp.disentangle.autoencoder import train_autoencoder
from d2cp.disentangle.batches import (
    balancing_weights,
    batch_positions,
    weighted_positions,
)
from d2cp.disentangle.concept_loop import MetricsSink, ProgressFactory, Recipe, Watch, fit
from d2cp.disentangle.concept_model import ConceptModel
from d2cp.disentangle.correlation import squared_correlation, squared_correlation_within
from d2cp.disentangle.diffusion import add_noise, biased_times, min_snr_weight, noise_loss
from d2cp.disentangle.given_scalars import GivenScalars
from d2cp.disentangle.guide import Guide, cross_fitted
from d2cp.disentangle.guide_training import train_guide
from d2cp.disentangle.latent_space import PixelSpace, Space
from d2cp.errors import TrainingError

STAGE = "disentangle"
SCALE_IMAGES = 256


def train_concepts(
    store: Stored,
    rows: NDArray[np.int64],
    y: NDArray[np.int64],
    config: DisentangleConfig,
    seed: int,
    *,
    checkpointer: Checkpointer | None = None,
    progress: ProgressFactory = show_progress,
    log: MetricsSink | None = None,
    given: NDArray[np.float32] | None = None,
) -> ConceptModel:
    """The concept model of the images `rows`. Their labels `y` reach the guide only. `given` are
    scalars of every row of the table that become concepts as they are."""
    if len(rows) == 0:
        raise TrainingError("there is no image to train on", expected="a train split with images")
    accelerator = make_accelerator(config.precision)
    watch = Watch(checkpointer, progress, log)
    space: Space = PixelSpace(config.size, config.unshuffle)
    if config.space == "vq":
        space = train_autoencoder(store, rows, config, seed, accelerator, watch)
    guide: Guide | None = None
    guided = torch.zeros(len(rows), 0, device=accelerator.device)
    weights: NDArray[np.float64] | None = None
    if config.guide.concepts and len(np.unique(y)) > 1:
        guide, logits = train_guide(store, rows, y, config, seed, accelerator, watch)
        guided = guide.scalars_from(logits, guide.folds)
        foreseen = cross_fitted(logits, guide.folds).argmax(1).cpu().numpy()
        weights = draw_weights(foreseen, y, config.guide.balance)
    fixed = None if given is None or not given.shape[1] else GivenScalars.of(given)
    model = ConceptModel(config, space, guide, seed, fixed).to(accelerator.device)
    if model.given is not None:
        guided = torch.cat([guided, model.given(rows)], dim=1)
    _set_latent_scale(model, store, rows, seed)
    latents = _all_latents(model, store, rows) if space.quantises else None

    def positions(step: int) -> NDArray[np.int64]:
        if weights is None:
            return batch_positions(seed, STAGE, step, config.batch, len(rows))
        return weighted_positions(seed, STAGE, step, config.batch, weights)

    def loss_at(module: nn.Module, step: int) -> Tensor:
        where = positions(step)
        share = share_of(config.batch)
        draw = torch_generator(seed, STAGE, step)
        shape = (config.batch, space.channels, space.side, space.side)
        noise = torch.randn(shape, generator=draw)[share].to(accelerator.device)
        even = torch.rand(config.batch, generator=draw)
        t = biased_times(even, config.timesteps, config.noise_bias)[share].to(accelerator.device)
        images = signed_view(store, rows[where[share]]).to(accelerator.device)
        z0 = model.to_latents(images) if latents is None else latents[where[share]]
        z_t = add_noise(z0, noise, t, model.alpha_bar)
        predicted, scalars = module(images, guided[where[share]], z_t, t)
        weight = min_snr_weight(model.alpha_bar[t], config.min_snr) if config.min_snr else None
        loss = global_mean(noise_loss(predicted, noise, config.loss, weight), len(images))
        if model.guided and config.guide.decorrelate:
            copies = squared_correlation(*model.split(scalars))
            loss = loss + config.guide.decorrelate * copies
        if config.decorrelate:
            free, _ = model.split(scalars)
            loss = loss + config.decorrelate * squared_correlation_within(free)
        return loss

    recipe = Recipe(
        steps=config.steps,
        batch=config.batch,
        side=config.size,
        penalties={
            "disentangle.decorrelate": config.decorrelate,
            "disentangle.guide.decorrelate": config.guide.decorrelate,
        },
        lr=config.lr,
        optimiser=config.optimiser,
        lr_schedule=config.lr_schedule,
        warmup=config.warmup,
        weight_decay=config.weight_decay,
        clip=config.clip,
        ema=config.ema.decay,
        ema_prefix="denoiser." if config.ema.scope == "denoiser" else "",
    )
    fit(model, loss_at, recipe, accelerator, watch, STAGE, lambda step: rows[positions(step)])
    return model


@torch.no_grad()
def _set_latent_scale(
    model: ConceptModel, store: Stored, rows: NDArray[np.int64], seed: int
) -> None:
    """Mean and standard deviation of the latents of some training images."""
    where = batch_positions(seed, "disentangle/scale", 0, min(SCALE_IMAGES, len(rows)), len(rows))
    latents = model.to_latents(signed_view(store, rows[where]).to(model.latent_std.device))
    model.latent_mean.copy_(latents.mean())
    model.latent_std.copy_(latents.std().clamp(min=1e-3))


def draw_weights(
    foreseen: NDArray[np.int64], y: NDArray[np.int64], most: float
) -> NDArray[np.float64] | None:
    """Weights that make class and guide's answer (the class it foresees, 0 … C−1) independent;
    None: all images alike."""
    if most == 1:
        return None
    labels = np.unique(y, return_inverse=True)[1]
    return balancing_weights(2 * labels + (foreseen != labels), most)


@torch.no_grad()
def _all_latents(model: ConceptModel, store: Stored, rows: NDArray[np.int64]) -> Tensor:
    """The latents of each training row, where an autoencoder makes them costly."""
    device = model.latent_std.device

    def latents(part: slice) -> Tensor:
        return model.to_latents(signed_view(store, rows[part]).to(device))

    space = model.space
    shape = (space.channels, space.side, space.side)
    return in_shares(latents, len(rows), SCALE_IMAGES, shape)
