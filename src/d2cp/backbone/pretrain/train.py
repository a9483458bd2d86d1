"""Train the embedded ViT on distorted glyphs; every draw is a function of (seed, step)."""

from __future__ import annotations

import csv
import math
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from d2cp.backbone.pretrain.distort import (
    IMAGE,
    colour_curriculum,
    curriculum,
    distort,
    paint,
    random_colours,
)
from d2cp.backbone.pretrain.glyphs import GlyphBank, build_bank
from d2cp.backbone.pretrain.model import COLOUR_WEIGHT, Pretraining, initialise, losses
from d2cp.files import write_bytes, write_json
from d2cp.rng import torch_generator

STAGE = "backbone/pretrain"


@dataclass(frozen=True, kw_only=True)
class Settings:
    steps: int = 5500
    seed: int = 0
    batch: int = 128
    lr: float = 1e-3
    warm_up: int = 150
    ramp: float = 0.25
    """Share of the steps over which the distortion grows to its full strength."""
    weight_decay: float = 0.05
    average: float = 0.998
    """Decay of the exponential moving average of the weights, which is what is saved."""
    log_every: int = 50
    save_every: int = 500


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
    model: Pretraining, optimiser: torch.optim.Optimizer, batch: Batch, lr: float
) -> dict[str, float]:
    for group in optimiser.param_groups:
        group["lr"] = lr
    logits, colours = model(batch.images)
    shape, colour = losses(logits, colours, batch.label, batch.ink, batch.ground)
    optimiser.zero_grad(set_to_none=True)
    (shape + COLOUR_WEIGHT * colour).backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()
    accuracy = (logits.argmax(1) == batch.label).float().mean()
    return {
        "glyph_loss": shape.item(),
        "glyph_accuracy": accuracy.item(),
        "colour_mse": colour.item(),
    }


def pretrain(out: Path, settings: Settings, bank: GlyphBank | None = None) -> None:
    """Write config.json, model.safetensors, preprocessor_config.json and training-log.csv."""
    out.mkdir(parents=True, exist_ok=True)
    bank = bank or build_bank()
    sampler = Sampler(bank)
    model = Pretraining(len(bank.classes))
    initialise(model, torch_generator(settings.seed, f"{STAGE}/init"))
    optimiser = make_optimiser(model, settings)
    average = {name: value.clone() for name, value in model.vit.state_dict().items()}
    ramp = int(settings.ramp * settings.steps)
    print(f"{len(bank.label)} glyphs, {len(bank.classes)} classes", flush=True)
    began = time.monotonic()
    with (out / "training-log.csv").open("w", newline="") as stream:
        log: csv.DictWriter[str] | None = None
        recent: list[dict[str, float]] = []
        for step in range(settings.steps):
            strength = curriculum(step, ramp)
            generator = torch_generator(settings.seed, STAGE, step)
            coloured = colour_curriculum(step, ramp)
            batch = sampler.batch(settings.batch, strength, coloured, generator)
            lr = learning_rate(step, settings)
            recent.append(train_step(model, optimiser, batch, lr))
            decay = min(settings.average, (step + 1) / (step + 10))
            for name, value in model.vit.state_dict().items():
                average[name].lerp_(value, 1 - decay)
            last = step + 1 == settings.steps
            if (step + 1) % settings.log_every == 0 or last:
                figures = {k: sum(r[k] for r in recent) / len(recent) for k in recent[0]}
                recent.clear()
                row = {
                    "step": step + 1,
                    "strength": strength,
                    "coloured": coloured,
                    "lr": lr,
                    **figures,
                }
                row["seconds"] = time.monotonic() - began
                row = {k: v if isinstance(v, int) else round(v, 6) for k, v in row.items()}
                if log is None:
                    log = csv.DictWriter(stream, list(row))
                    log.writeheader()
                log.writerow(row)
                stream.flush()
                print(row, flush=True)
            if (step + 1) % settings.save_every == 0 or last:
                save(model, average, out)


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
