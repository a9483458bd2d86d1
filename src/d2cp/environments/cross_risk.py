"""XRM on frozen features: two linear twins teach each other which labels not to believe.

Each training image is owned by one twin, which learns its label; the other twin, which does not,
may overwrite it when it is sure. What neither twin can explain without having seen the label is the
environment e = 1. All random settings train together as one batched computation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from d2cp.config.environments import EnvironmentsConfig
from d2cp.core.arrays import Ints
from d2cp.core.rng import numpy_generator, permutation, torch_generator


@dataclass(frozen=True)
class Settings:
    """The random settings, one entry each."""

    lr: Tensor
    weight_decay: Tensor
    batch: Tensor


@dataclass(frozen=True)
class Twins:
    """weight [S, 2, C, D] and bias [S, 2, C] of S settings; zero at first."""

    weight: Tensor
    bias: Tensor

    def logits(self, features: Tensor) -> Tensor:
        """[S, 2, B, C] of features [B, D]."""
        return torch.einsum("bd,stcd->stbc", features, self.weight) + self.bias[:, :, None]


@dataclass(frozen=True)
class Environments:
    """Bits of the kept setting. Where every setting is degenerate, zeros and the reason."""

    train: Ints
    val: Ints
    flip_rates: tuple[float, ...]
    """Share of changed labels at the end; 0 for a degenerate setting."""
    chosen: int | None
    reason: str = ""

    @property
    def degenerate(self) -> bool:
        return self.chosen is None


def discover_environments(
    train: Tensor,
    y_train: Ints,
    val: Tensor,
    y_val: Ints,
    classes: int,
    config: EnvironmentsConfig,
    seed: int,
    *,
    stage: str = "xrm",
) -> Environments:
    """Environment bits of the training and validation rows, from features [N, D] and labels."""
    if config.standardise:
        mean, std = train.mean(0), train.std(0).clamp(min=1e-6)
        train, val = (train - mean) / std, (val - mean) / std
    labels = torch.from_numpy(y_train)
    settings = draw_settings(config, seed, stage)
    owner = draw_owners(config.settings, len(labels), seed, stage)
    twins, changed = fit_twins(train, labels, owner, classes, settings, config, seed, stage)
    rates = (changed != labels).float().mean(dim=1)
    bits = environment_bits(twins, train, labels)
    bits_val = environment_bits(twins, val, torch.from_numpy(y_val))
    problems = [
        _degenerate(bits[s].numpy(), y_train, "train")
        or _degenerate(bits_val[s].numpy(), y_val, "val")
        for s in range(config.settings)
    ]
    kept = [0.0 if problem else float(rate) for problem, rate in zip(problems, rates, strict=True)]
    if all(problems):
        none = np.zeros(len(y_train), np.int64), np.zeros(len(y_val), np.int64)
        reason = f"every setting of XRM is degenerate, for example {problems[0]}"
        return Environments(*none, tuple(kept), None, reason)
    usable = [s for s, problem in enumerate(problems) if not problem]
    best = max(usable, key=lambda s: kept[s])
    return Environments(bits[best].numpy(), bits_val[best].numpy(), tuple(kept), best)


def draw_settings(config: EnvironmentsConfig, seed: int, stage: str) -> Settings:
    generator = numpy_generator(seed, f"{stage}/settings")

    def powers(base: float, exponents: tuple[float, ...]) -> Tensor:
        drawn = base ** generator.uniform(exponents[0], exponents[1], config.settings)
        return torch.from_numpy(drawn).float()

    lr = powers(10, config.lr_exponents)
    decay = powers(10, config.weight_decay_exponents)
    return Settings(lr, decay, powers(2, config.batch_exponents).round().long())


def draw_owners(settings: int, n: int, seed: int, stage: str) -> Tensor:
    """[S, N] in {0, 1}: which twin learns an image's label."""
    return torch.randint(2, (settings, n), generator=torch_generator(seed, f"{stage}/owners"))


def fit_twins(
    features: Tensor,
    labels: Tensor,
    owner: Tensor,
    classes: int,
    settings: Settings,
    config: EnvironmentsConfig,
    seed: int,
    stage: str,
) -> tuple[Twins, Tensor]:
    """The twins after the last step, and the labels as they then stand [S, N].

    All settings read the same order of images; one with a smaller batch takes the first part of
    each slice. Gradients are written out: a linear layer needs no autograd.
    """
    n, width = features.shape
    count = len(settings.lr)
    changed = labels.repeat(count, 1)
    weight = torch.zeros(count, 2, classes, width)
    bias = torch.zeros(count, 2, classes)
    speed = [torch.zeros_like(weight), torch.zeros_like(bias)]
    twins = Twins(weight, bias)
    size = min(int(settings.batch.max()), n)
    per_epoch = n // size
    order: Ints = np.zeros(0, np.int64)
    for step in range(config.steps):
        epoch, position = divmod(step, per_epoch)
        if position == 0:
            order = permutation(seed, stage, epoch, n)
        rows = torch.from_numpy(order[position * size : (position + 1) * size])
        x, mine = features[rows], owner[:, rows]
        active = torch.arange(size) < settings.batch[:, None]
        held_in, held_out = split_logits(twins.logits(x), mine)
        slope = class_balanced_slope(held_in, changed[:, rows], active)
        for twin in (0, 1):
            part = slope * (mine == twin)[..., None]
            _descend(
                weight[:, twin],
                torch.einsum("sbc,bd->scd", part, x),
                speed[0][:, twin],
                settings,
                config.momentum,
            )
            _descend(bias[:, twin], part.sum(1), speed[1][:, twin], settings, config.momentum)
        draws = torch.rand(count, size, generator=torch_generator(seed, f"{stage}/flip", step))
        changed[:, rows] = torch.where(
            active, flip(changed[:, rows], held_out, draws), changed[:, rows]
        )
    return twins, changed


def split_logits(logits: Tensor, owner: Tensor) -> tuple[Tensor, Tensor]:
    """(held-in, held-out) [S, B, C] from both twins' logits [S, 2, B, C] and the owners [S, B]."""
    first, second = logits[:, 0], logits[:, 1]
    is_first = (owner == 0)[..., None]
    return torch.where(is_first, first, second), torch.where(is_first, second, first)


def class_balanced_slope(logits: Tensor, labels: Tensor, active: Tensor) -> Tensor:
    """Derivative, by logits [S, B, C], of Σ over the classes present of their mean cross-entropy.

    Rows that are not `active` [S, B] have no part in it.
    """
    target = torch.nn.functional.one_hot(labels, logits.shape[-1]).to(logits.dtype)
    target = target * active[..., None]
    size = target.sum(1)  # [S, C]
    share = torch.where(size > 0, 1 / size.clamp(min=1), torch.zeros_like(size))
    weight = (target * share[:, None]).sum(-1, keepdim=True)
    return weight * (logits.softmax(-1) - target)


def flip(labels: Tensor, held_out: Tensor, draws: Tensor) -> Tensor:
    """ỹ ← ŷ with probability (p - 1/n)·n/(n-1), p the held-out twin's largest probability."""
    classes = held_out.shape[-1]
    p, predicted = held_out.softmax(-1).max(-1)
    sure = (p - 1 / classes) * classes / (classes - 1)
    return torch.where(draws < sure, predicted, labels)


def environment_bits(twins: Twins, features: Tensor, labels: Tensor, chunk: int = 8192) -> Tensor:
    """e [S, N] = 1 where either twin's answer differs from the original label."""
    parts = [torch.zeros(len(twins.weight), 0, dtype=torch.int64)]
    for start in range(0, len(labels), chunk):
        answer = twins.logits(features[start : start + chunk]).argmax(-1)
        wrong = (answer != labels[start : start + chunk]).any(dim=1)
        parts.append(wrong.long())
    return torch.cat(parts, dim=1)


def _descend(
    value: Tensor, slope: Tensor, speed: Tensor, settings: Settings, momentum: float
) -> None:
    """One step of SGD with momentum and weight decay, a setting's own rates, in place."""
    shape = (-1, *[1] * (value.dim() - 1))
    decay, lr = settings.weight_decay.view(shape), settings.lr.view(shape)
    speed.mul_(momentum).add_(slope + decay * value)
    value.sub_(lr * speed)


def _degenerate(bits: Ints, labels: Ints, split: str) -> str:
    """Why these bits are useless as environments, or an empty string."""
    for c in np.unique(labels):
        share = bits[labels == c].mean()
        if share in (0.0, 1.0):
            which = "the twins explain every image" if share == 0 else "the twins explain no image"
            return f"{which} of class {c} in {split}"
    return ""
