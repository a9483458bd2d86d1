"""Train the embedded ViT on distorted glyphs; every draw is a function of (seed, step).

Two phases. `shape`: the glyph's class, and the RGB of ink and ground, from fresh weights. `colour`:
the colours are classes too, which makes them more prominent in the features than shape.
"""

from __future__ import annotations

import csv
import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from transformers import ViTModel

from d2cp.core.files import write_bytes, write_json
from d2cp.core.rng import torch_generator
from tools.pretrain_backbone.distort import (
    IMAGE,
    colour_curriculum,
    curriculum,
    distort,
    paint,
    random_colours,
)
from tools.pretrain_backbone.glyphs import GlyphBank
from tools.pretrain_backbone.model import (
    LEVELS,
    Pretraining,
    colour_entropy,
    colour_error,
    initialise,
)

STAGE = "backbone/pretrain"


ColourLoss = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One phase."""

    name: str
    steps: int
    lr: float
    warm_up: int
    colour_weight: float
    ramp: float = 0.0
    """Share of the steps over which distortion and colours grow to their full strength."""
    average: float
    """Decay of the exponential moving average of the weights, which is what is saved."""
    heads_only: int = 0
    """Steps before the first, in which fresh heads learn to read the weights of the last phase."""
    heads_lr: float = 1e-2
    seed: int = 0
    batch: int = 128
    weight_decay: float = 0.05
    log_every: int = 50
    save_every: int = 500


SHAPE = Settings(
    name="shape", steps=5500, lr=1e-3, warm_up=150, colour_weight=2.0, ramp=0.25, average=0.998
)
COLOUR = Settings(
    name="colour", steps=1200, lr=6e-4, warm_up=50, colour_weight=8.0, average=0.99, heads_only=100
)


@dataclass(frozen=True, kw_only=True)
class Batch:
    images: Tensor
    label: Tensor
    ink: Tensor
    ground: Tensor


class Sampler:
    """Batches of distorted, coloured glyphs: each class as likely as any other."""

    def __init__(self, bank: GlyphBank) -> None:
        self.skeleton = torch.from_numpy(bank.skeleton)
        self.filled = torch.from_numpy(bank.filled)
        counts = np.bincount(bank.label, minlength=len(bank.classes))
        self.count = torch.from_numpy(counts)
        self.start = torch.from_numpy(np.cumsum(counts) - counts)

    def batch(
        self, size: int, strength: float, coloured: float, generator: torch.Generator
    ) -> Batch:
        label = torch.randint(len(self.count), (size,), generator=generator)
        within = (torch.rand(size, generator=generator) * self.count[label]).long()
        rows = self.start[label] + within
        coverage = distort(self.skeleton[rows], self.filled[rows], strength, generator)
        ink, ground = random_colours(size, coloured, generator)
        return Batch(images=paint(coverage, ink, ground), label=label, ink=ink, ground=ground)


def learning_rate(step: int, settings: Settings) -> float:
    """Linear warm-up, then half a cosine down to zero."""
    if step < settings.warm_up:
        return settings.lr * (step + 1) / settings.warm_up
    t = (step - settings.warm_up) / max(1, settings.steps - settings.warm_up)
    return settings.lr * 0.5 * (1 + math.cos(math.pi * t))


def make_optimiser(model: nn.Module, settings: Settings) -> torch.optim.AdamW:
    """AdamW that decays matrices only, never biases, norms, CLS or positions."""
    decayed: list[nn.Parameter] = []
    kept: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        matrix = parameter.ndim > 1 and "position" not in name and "cls_token" not in name
        (decayed if matrix else kept).append(parameter)
    groups = [
        {"params": decayed, "weight_decay": settings.weight_decay},
        {"params": kept, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=settings.lr, betas=(0.9, 0.98))


def train_step(
    model: Pretraining,
    optimiser: torch.optim.Optimizer,
    batch: Batch,
    lr: float,
    colour_loss: ColourLoss,
    colour_weight: float,
) -> dict[str, float]:
    for group in optimiser.param_groups:
        group["lr"] = lr
    logits, colours = model(batch.images)
    shape = nn.functional.cross_entropy(logits, batch.label)
    colour = colour_loss(colours, batch.ink, batch.ground)
    optimiser.zero_grad(set_to_none=True)
    (shape + colour_weight * colour).backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()
    accuracy = (logits.argmax(1) == batch.label).float().mean()
    return {
        "glyph_loss": shape.item(),
        "glyph_accuracy": accuracy.item(),
        "colour_loss": colour.item(),
    }


def pretrain_shape(out: Path, bank: GlyphBank, settings: Settings = SHAPE) -> None:
    """Phase one, from fresh weights; its colour loss is the squared error of RGB."""
    model = Pretraining(len(bank.classes))
    initialise(model, torch_generator(settings.seed, f"{STAGE}/init"))
    run_phase(model, out, bank, settings, colour_error, STAGE)


def pretrain_colour(start: Path, out: Path, bank: GlyphBank, settings: Settings = COLOUR) -> None:
    """Phase two, from the weights in `start`; its colour loss is the cross-entropy of classes."""
    model = Pretraining(len(bank.classes), 2 * LEVELS**3)
    initialise(model, torch_generator(settings.seed, f"{STAGE}/colour/init"))
    model.vit = ViTModel.from_pretrained(start, add_pooling_layer=False)
    run_phase(model, out, bank, settings, colour_entropy, f"{STAGE}/colour")


def run_phase(
    model: Pretraining,
    out: Path,
    bank: GlyphBank,
    settings: Settings,
    colour_loss: ColourLoss,
    stage: str,
) -> None:
    """Write config.json, model.safetensors, preprocessor_config.json and the phase's log."""
    out.mkdir(parents=True, exist_ok=True)
    sampler, optimiser = Sampler(bank), make_optimiser(model, settings)
    average = {name: value.clone() for name, value in model.vit.state_dict().items()}
    print(f"{settings.name}: {len(bank.label)} glyphs, {len(bank.classes)} classes", flush=True)
    log = Log(out / f"training-log-{settings.name}.csv")
    for step in range(-settings.heads_only, settings.steps):
        model.vit.requires_grad_(step >= 0)
        ramp = int(settings.ramp * settings.steps)
        strength = curriculum(step, ramp) if ramp else 1.0
        coloured = colour_curriculum(step, ramp)
        generator = torch_generator(settings.seed, stage, step + settings.heads_only)
        batch = sampler.batch(settings.batch, strength, coloured, generator)
        lr = learning_rate(step, settings) if step >= 0 else settings.heads_lr
        figures = train_step(model, optimiser, batch, lr, colour_loss, settings.colour_weight)
        if step < 0:
            continue
        log.add(figures)
        decay = min(settings.average, (step + 1) / (step + 10))
        for name, value in model.vit.state_dict().items():
            average[name].lerp_(value, 1 - decay)
        last = step + 1 == settings.steps
        if (step + 1) % settings.log_every == 0 or last:
            log.write({"step": step + 1, "strength": strength, "coloured": coloured, "lr": lr})
        if (step + 1) % settings.save_every == 0 or last:
            save(model, average, out)


class Log:
    """A CSV of figures averaged since the last line; each line is on disk when it is printed."""

    def __init__(self, path: Path) -> None:
        self._path, self._recent, self._began = path, list[dict[str, float]](), time.monotonic()
        path.unlink(missing_ok=True)

    def add(self, figures: dict[str, float]) -> None:
        self._recent.append(figures)

    def write(self, facts: dict[str, float]) -> None:
        recent = self._recent
        means = {key: sum(each[key] for each in recent) / len(recent) for key in recent[0]}
        recent.clear()
        row = {**facts, **means, "seconds": time.monotonic() - self._began}
        row = {key: v if isinstance(v, int) else round(v, 6) for key, v in row.items()}
        new = not self._path.exists()
        with self._path.open("a", newline="") as stream:
            writer = csv.DictWriter(stream, list(row))
            if new:
                writer.writeheader()
            writer.writerow(row)
        print(row, flush=True)


def save(model: Pretraining, average: dict[str, Tensor], out: Path) -> None:
    """The averaged weights as a folder that transformers loads, each file replaced whole."""
    with tempfile.TemporaryDirectory(dir=out) as draft:
        model.vit.save_pretrained(draft, state_dict=average)
        for file in sorted(Path(draft).iterdir()):
            write_bytes(out / file.name, file.read_bytes())
    preprocessor = {
        "image_processor_type": "ViTImageProcessor",
        "do_resize": True,
        "size": {"height": IMAGE, "width": IMAGE},
        "resample": 2,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
    }
    write_json(out / "preprocessor_config.json", preprocessor)
