"""Where a step of the concept model spends its time: arithmetic by part, time by operation.

python benchmarks/concept_step.py --preset demo --steps 15
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
from collections import Counter

import numpy as np
import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

import saved
from d2cp.config import load_config
from d2cp.config.disentangle import DisentangleConfig
from d2cp.core.progress import progress
from d2cp.disentangle import concept_training
from d2cp.disentangle.concept_model import ConceptModel
from d2cp.disentangle.latent_space import PixelSpace

SHOWN = 8


def arithmetic(config: DisentangleConfig) -> Counter[str]:
    """FLOP of a forward pass in convolutions and linear layers, by part of the model."""
    model = ConceptModel(config, PixelSpace(config.size, config.unshuffle), None, 0)
    found: Counter[str] = Counter()

    def count(part: str, module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        inner = module.weight[0].numel()  # type: ignore[index, union-attr]
        found[part] += 2 * output.numel() * inner

    for name, module in model.named_modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            module.register_forward_hook(functools.partial(count, name.split(".")[0]))
    images = torch.rand(config.batch, 3, config.size, config.size)
    t = torch.zeros(config.batch, dtype=torch.int64)
    model(images, images.new_zeros(config.batch, 0), model.to_latents(images), t)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="demo")
    parser.add_argument("--steps", type=int, default=15)
    saved.option(parser)
    given = parser.parse_args()
    whole = load_config(given.preset).disentangle
    free = dataclasses.replace(whole.guide, concepts=0)
    config = dataclasses.replace(whole, steps=given.steps, guide=free)
    parts = arithmetic(config)
    print(f"{given.preset}: {config.batch} images a step; forward {parts.total() / 1e9:.2f} GFLOP")
    lines = [(part, f"{100 * flop / parts.total():.0f}%") for part, flop in parts.most_common()]
    for part, share in lines:
        print(f"  {part:12} {share:>5}")
    draw = np.random.default_rng(0)
    images = draw.integers(256, size=(1000, config.size, config.size, 3), dtype=np.uint8)
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        concept_training.train_concepts(
            images,
            np.arange(1000),
            draw.integers(2, size=1000),
            config,
            0,
            progress=functools.partial(progress, quiet=True),
        )
    times = {e.key: e.self_cpu_time_total / 1000 / given.steps for e in seen.key_averages()}
    total = sum(times.values())
    print(f"a step {total:.0f} ms, by operation (torch.profiler, its own cost included)")
    longest = sorted(times, key=lambda key: -times[key])[:SHOWN]
    spent = [(key, f"{times[key]:.1f}", f"{100 * times[key] / total:.0f}%") for key in longest]
    for name, milliseconds, share in spent:
        print(f"  {name:55} {milliseconds:>6} ms {share:>5}")
    about = f"{config.batch} images a step, {parts.total() / 1e9:.2f} GFLOP forward, "
    saved.save(
        given.save,
        seeds=[0],
        selection="",
        tables={
            "arithmetic": saved.table(("part", "of the forward arithmetic"), lines),
            "operations": saved.table(("operation", "ms a step", "of the time"), spent),
        },
        figures={"GFLOP": f"{parts.total() / 1e9:.2f}", "images": str(config.batch)},
        about=about + f"preset {given.preset}; time by torch's profiler, its own cost included",
    )


if __name__ == "__main__":
    main()
