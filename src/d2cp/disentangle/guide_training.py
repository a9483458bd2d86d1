"""Training the guide: cross-fitted lazy networks, and the scale of their scalars."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from numpy.typing import NDArray
from torch import Tensor, nn

from d2cp.config.disentangle import DisentangleConfig
from d2cp.core.parts import in_parts, working
from d2cp.core.processes import global_mean, in_shares, share_of
from d2cp.core.rng import permutation, seeded, torch_generator
from d2cp.data.pixels import Stored, signed_view
from d2cp.disentangle.batches import batch_positions
from d2cp.disentangle.concept_loop import Recipe, Watch, fit
from d2cp.disentangle.guide import Guide, cross_fitted, generalised_cross_entropy

WEIGHT_DECAY = 0.05


def train_guide(
    store: Stored,
    rows: NDArray[np.int64],
    y: NDArray[np.int64],
    config: DisentangleConfig,
    seed: int,
    accelerator: Accelerator,
    watch: Watch,
) -> tuple[Guide, Tensor]:
    """Train each network on the images of the other folds, with their labels.

    Beside the guide, its networks' logits [F,N,C] of these rows, whose folds are `guide.folds`.
    """
    values, labels = np.unique(y, return_inverse=True)
    folds = assign_folds(len(rows), config.guide.folds, seed)
    with seeded(seed, "disentangle/guide"):
        guide = Guide.sized(config, len(values), len(rows))
    guide.to(accelerator.device)
    guide.rows.copy_(torch.from_numpy(rows))
    guide.folds.copy_(torch.from_numpy(folds))
    for number, net in enumerate(guide.nets):
        seen = np.flatnonzero(folds != number)
        loss_at = _loss(
            store, rows[seen], labels[seen], len(values), config, seed, number, accelerator
        )
        recipe = Recipe(
            steps=config.guide.steps,
            batch=config.guide.batch,
            settings="disentangle.guide",
            side=config.size,
            lr=config.guide.lr,
            warmup=min(20, config.guide.steps // 10),
            weight_decay=WEIGHT_DECAY,
        )
        name = f"guide-{number}"
        rows_at = partial(_rows_at, rows[seen], config, seed, number)
        fit(net, loss_at, recipe, accelerator, watch.part(name), f"disentangle/{name}", rows_at)
    logits = _all_logits(guide, store, rows, config.size)
    _set_scale(guide, logits)
    return guide.requires_grad_(False), logits


def assign_folds(n: int, folds: int, seed: int) -> NDArray[np.int64]:
    """A fold for each image, of even sizes and blind to the labels: an image's label decides
    nothing about the network that scores it."""
    out = np.empty(n, dtype=np.int64)
    out[permutation(seed, "disentangle/folds", 0, n)] = np.arange(n) % folds
    return out


def _stage(number: int) -> str:
    return f"disentangle/guide/{number}"


def _rows_at(
    rows: NDArray[np.int64], config: DisentangleConfig, seed: int, number: int, step: int
) -> NDArray[np.int64]:
    return rows[batch_positions(seed, _stage(number), step, config.guide.batch, len(rows))]


def _loss(
    store: Stored,
    rows: NDArray[np.int64],
    labels: NDArray[np.int64],
    classes: int,
    config: DisentangleConfig,
    seed: int,
    number: int,
    accelerator: Accelerator,
) -> Callable[[nn.Module, int], Tensor]:
    stage = _stage(number)
    counts = np.bincount(labels, minlength=classes)
    balance = torch.from_numpy(len(labels) / (len(counts) * counts.clip(min=1))).float()

    def loss_at(net: nn.Module, step: int) -> Tensor:
        where = batch_positions(seed, stage, step, config.guide.batch, len(rows))
        share = share_of(config.guide.batch)
        images = signed_view(store, rows[where[share]])
        draw = torch_generator(seed, stage, step)
        images = augment(images, draw, config, batch=config.guide.batch, share=share)
        target = torch.from_numpy(labels[where[share]])
        weight = balance[target].to(accelerator.device)
        logits = net(images.to(accelerator.device))
        each = generalised_cross_entropy(logits, target.to(accelerator.device), config.guide.q)
        return global_mean((each * weight).mean(), len(each))

    return loss_at


def augment(
    images: Tensor,
    draw: torch.Generator,
    config: DisentangleConfig,
    *,
    batch: int | None = None,
    share: slice = slice(None),
) -> Tensor:
    """Random mirror images and shifts (edges repeated): harder to remember, as easy to see.

    The images are a share of a batch; what is drawn belongs to the whole of it.
    """
    count = batch or len(images)
    if config.guide.flip:
        flip = torch.rand(count, generator=draw)[share] < 0.5
        images = torch.where(flip[:, None, None, None], images.flip(-1), images)
    reach = round(config.guide.shift * images.shape[-1])
    if reach:
        side = images.shape[-1]
        padded = F.pad(images, (reach,) * 4, mode="replicate")
        dy, dx = torch.randint(2 * reach + 1, (2, count), generator=draw)[:, share]
        steps = torch.arange(side)
        y = (dy[:, None] + steps)[:, None, :, None]
        x = (dx[:, None] + steps)[:, None, None, :]
        b = torch.arange(len(images))[:, None, None, None]
        images = padded[b, torch.arange(3)[None, :, None, None], y, x]
    return images


@torch.no_grad()
def _all_logits(
    guide: Guide, store: Stored, rows: NDArray[np.int64], size: int, batch: int = 256
) -> Tensor:
    device = guide.basis.device

    def of_images(images: Tensor) -> Tensor:
        return guide.logits(images).movedim(1, 0)

    def logits(part: slice) -> Tensor:
        return in_parts(of_images, [signed_view(store, rows[part]).to(device)])

    shape = (len(guide.nets), guide.classes)
    with working(batch * 3 * size**2):
        return in_shares(logits, len(rows), batch, shape).movedim(1, 0).contiguous()


def _set_scale(guide: Guide, logits: Tensor) -> None:
    """Align the networks (each one's held-out logits centred, unit norm on average) and keep the
    directions in which the held-out logits vary most."""
    for number in range(len(guide.nets)):
        own = logits[number, guide.folds == number]
        guide.centre[number] = own.mean(0)
        guide.scale[number] = (own - own.mean(0)).norm(dim=1).pow(2).mean().sqrt().clamp(min=1e-6)
    aligned = (logits - guide.centre[:, None]) / guide.scale[:, None, None]
    held_out = cross_fitted(aligned, guide.folds)
    values, vectors = torch.linalg.eigh(held_out.T @ held_out / len(held_out))
    top = vectors[:, -guide.concepts :].flip(-1)
    sign = top[-1].sign() + (top[-1] == 0)
    guide.basis.copy_(top * sign / values[-guide.concepts :].flip(-1).clamp(min=1e-6).sqrt())
