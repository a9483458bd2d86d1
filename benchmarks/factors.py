"""FactorVAE score and DCI on digit × colour, beside the same encoder trained without diffusion.

    python benchmarks/factors.py --seeds 0 1 2

MNIST digits painted in colours drawn independently of the digit: two known factors. The concept
model is the preset's in the paper's form (no guide, labels unused). The control keeps its encoder
(and the standardising of its scalars), images, batches, steps and optimiser and replaces tokens and
denoiser by a plain decoder that minimises the squared error of the pixels. Figures in percent, 100
is perfect.
"""

from __future__ import annotations

import argparse
import dataclasses
import time

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

import saved
from d2cp.config import load_config
from d2cp.config.disentangle import DisentangleConfig
from d2cp.config.strict import changed
from d2cp.core.rng import derive, numpy_generator
from d2cp.data.mnist import load_mnist
from d2cp.data.pixels import signed_view
from d2cp.disentangle.batches import batch_positions
from d2cp.disentangle.concept_loop import Recipe, learning_rate
from d2cp.disentangle.concept_training import train_concepts
from d2cp.disentangle.encoder import build_encoder
from d2cp.disentangle.extract import extract
from d2cp.evaluate.metrics import over_seeds
from disentanglement import dci, factor_table, factor_vae_score

PALETTE = np.array(
    [(255, 0, 0), (0, 255, 0), (40, 80, 255), (255, 255, 0), (255, 0, 255), (0, 255, 255)]
)
FIGURES = ("factor_vae", "disentanglement", "completeness", "informativeness")


def digit_by_colour(count: int, seed: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Images [N, 28, 28, 3] and factors [N, 2]: digit and colour, independent."""
    mnist = load_mnist()
    generator = numpy_generator(seed, "factors/colours")
    rows = generator.permutation(len(mnist.train_labels))[:count]
    colour = generator.integers(len(PALETTE), size=count)
    grey = mnist.train_images[rows, :, :, None] / 255.0
    images = (grey * PALETTE[colour][:, None, None, :]).round().astype(np.uint8)
    return images, factor_table(mnist.train_labels[rows], colour)


def train_autoencoder_control(
    images: NDArray[np.uint8], config: DisentangleConfig, seed: int
) -> nn.Module:
    """The encoder f_C after the same number of steps as half of a plain autoencoder."""
    with torch.random.fork_rng():
        torch.manual_seed(derive(seed, "factors/control"))
        encoder: nn.Module = build_encoder(
            config.encoder,
            config.size,
            config.concepts,
            config.encoder.width,
            config.encoder.hidden,
        )
        if config.scalar_norm:
            encoder = nn.Sequential(encoder, nn.BatchNorm1d(config.concepts, affine=False))
        pixels = 3 * config.size**2
        decoder = nn.Sequential(
            nn.Linear(config.concepts, config.encoder.hidden),
            nn.ReLU(),
            nn.Linear(config.encoder.hidden, 2 * config.encoder.hidden),
            nn.ReLU(),
            nn.Linear(2 * config.encoder.hidden, pixels),
            nn.Tanh(),
        )
    both = nn.ModuleList([encoder, decoder])
    optimizer = torch.optim.AdamW(both.parameters(), lr=config.lr, weight_decay=config.weight_decay)
    recipe = Recipe(steps=config.steps, batch=config.batch, lr=config.lr, warmup=config.warmup)
    for step in range(config.steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(recipe, step)
        rows = batch_positions(seed, "factors/control", step, config.batch, len(images))
        batch = signed_view(images, rows)
        loss = ((decoder(encoder(batch)) - batch.flatten(1)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(both.parameters(), config.clip or float("inf"))
        optimizer.step()
    return encoder.eval()


@torch.no_grad()
def encode(encoder: nn.Module, images: NDArray[np.uint8]) -> NDArray[np.float32]:
    rows = np.arange(len(images))
    parts = [encoder(signed_view(images, rows[i : i + 256])) for i in range(0, len(rows), 256)]
    return torch.cat(parts).numpy()


def figures(
    codes: NDArray[np.float32], factors: NDArray[np.int64], train: int, seed: int
) -> dict[str, float]:
    """Scores of codes; the first `train` rows are the ones the model has seen."""
    scored = dci(codes[:train], factors[:train], codes[train:], factors[train:], seed=seed)
    return {
        "factor_vae": factor_vae_score(codes, factors, seed=seed),
        "disentanglement": scored.disentanglement,
        "completeness": scored.completeness,
        "informativeness": scored.informativeness,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="demo")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--held-out", type=int, default=2_000)
    parser.add_argument("--steps", type=int, help="instead of the preset's")
    parser.add_argument("--threads", type=int, default=2)
    saved.option(parser)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    config = changed(load_config(options.preset).disentangle, {"guide.concepts": 0})
    if options.steps:
        config = dataclasses.replace(config, steps=options.steps)
    found: dict[str, list[dict[str, float]]] = {"diffusion": [], "autoencoder": []}
    for seed in options.seeds:
        images, factors = digit_by_colour(options.images + options.held_out, seed)
        rows = np.arange(options.images)
        began = time.monotonic()
        model = train_concepts(images, rows, factors[rows, 0], config, seed)
        codes = extract(model, images, np.arange(len(images))).scalars
        seconds = time.monotonic() - began
        found["diffusion"].append(figures(codes, factors, options.images, seed))
        encoder = train_autoencoder_control(images[: options.images], config, seed)
        control = encode(encoder, images)
        found["autoencoder"].append(figures(control, factors, options.images, seed))
        print(f"seed {seed}: concept model {seconds:.0f} s", {k: v[-1] for k, v in found.items()})
    print(f"digit × colour, K = {config.concepts}, {config.steps} steps, seeds {options.seeds}")
    print(f"{'':12}" + "".join(f"{name:>20}" for name in FIGURES))
    lines = []
    for name, runs in found.items():
        cells = [str(over_seeds([run[figure] for run in runs])) for figure in FIGURES]
        print(f"{name:12}" + "".join(f"{cell:>20}" for cell in cells))
        lines.append([name, *cells])
    saved.save(
        options.save,
        seeds=options.seeds,
        selection="",
        tables={"": saved.table(["trained as", *FIGURES], lines)},
        about=f"{config.concepts} concepts, {config.steps} steps",
    )


if __name__ == "__main__":
    main()
