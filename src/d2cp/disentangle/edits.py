"""Edits of the real photo: what changes in it when one concept is moved.

Decoding a photograph from noise and a few scalars loses it. The difference between two guesses at
what is behind the same noise does not: x + mean over noise draws of
[ẑ_0(z_t, concept moved) − ẑ_0(z_t, own concepts)], where z_t is the photo's own latent with most of
its signal gone, is a sharp photo with nothing but the concept changed, and the difference alone,
enlarged, is a map of what the concept means.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from d2cp.core.arrays import Bytes as Pixels
from d2cp.core.arrays import Rows
from d2cp.core.rng import torch_generator
from d2cp.data.pixels import to_bytes
from d2cp.disentangle.canvas import Grid
from d2cp.disentangle.concept_model import ConceptModel
from d2cp.disentangle.diffusion import add_noise, predict_z0

DRAWS = 16
SIGNAL = (0.01, 0.05)
"""ᾱ of the draws: little enough for the concepts to have a say, enough for places to be known."""
REACH = 0.6
"""How far the enlarged difference goes from grey, in [−1, 1], at its 99th percentile."""
VISIBLE, MOST = 0.7, 8
"""The same of the edited photo, and how many times at most the difference is added for it."""


@torch.no_grad()
def edit(
    model: ConceptModel, images: Tensor, scalars: Tensor, moved: Tensor, rows: Rows, seed: int
) -> Tensor:
    """What moving the concepts adds to the photos [B, 3, H, W], which are in [−1, 1]."""
    model.eval()
    latents = model.to_latents(images)
    own, other = model.concept_tokens(scalars), model.concept_tokens(moved)
    difference = torch.zeros_like(latents)
    times = edit_times(model.alpha_bar)
    for number, t in enumerate(times):
        each = [
            torch.randn(
                latents.shape[1:],
                generator=torch_generator(seed, f"disentangle/edits/{number}", int(row)),
            )
            for row in rows
        ]
        when = torch.full((len(images),), t, device=latents.device)
        z_t = add_noise(latents, torch.stack(each).to(latents), when, model.alpha_bar)
        bar = model.alpha_bar[t]
        guesses = [predict_z0(z_t, model.denoise(z_t, when, k), bar) for k in (other, own)]
        difference += (guesses[0] - guesses[1]) / len(times)
    plain = model.to_images(latents, quantise=False)
    return model.to_images(latents + difference, quantise=False) - plain


def edit_times(alpha_bar: Tensor) -> list[int]:
    """DRAWS times whose ᾱ lies in SIGNAL, evenly spaced; the nearest one where none does."""
    inside = torch.nonzero((alpha_bar >= SIGNAL[0]) & (alpha_bar <= SIGNAL[1])).flatten().tolist()
    if not inside:
        inside = [int((alpha_bar - sum(SIGNAL) / 2).abs().argmin())]
    places = np.linspace(0, len(inside) - 1, DRAWS).round().astype(int)
    return [inside[i] for i in places]


def size_of(change: Tensor) -> float:
    """The 99th percentile of the difference."""
    return float(torch.quantile(change.abs().flatten()[:: max(1, change.numel() // 2**20)], 0.99))


def enlarged(change: Tensor) -> Tensor:
    """The difference around mid grey, all photos on one scale: [B, 3, H, W] in [−1, 1]."""
    return (change * (REACH / max(size_of(change), 1e-6))).clamp(-1, 1)


def gain_of(change: Tensor) -> int:
    """How many times the difference has to be added for the change to be seen; once if it is."""
    return max(1, min(MOST, round(VISIBLE / max(size_of(change), 1e-6))))


def edit_picture(
    images: Tensor,
    change: Tensor,
    labels: Sequence[str],
    named: str,
) -> Image.Image:
    """Photo | the same photo with the concept moved | the difference, enlarged."""
    gain = gain_of(change)
    moved = "with the other value" + (f", {gain} times the change" if gain > 1 else "")
    columns: list[tuple[str, Pixels]] = [
        ("photo", _pixels(images)),
        (moved, _pixels(images + gain * change)),
        ("difference, enlarged", _pixels(enlarged(change))),
    ]
    note = (
        "The second column is the real photo with what moving the concept changes in the model's "
        "guess, as many times as it says. Third column: that change alone; grey is none, a colour "
        "means more of it."
    )
    rows = [(label, [pixels[i] for _, pixels in columns]) for i, label in enumerate(labels)]
    title = f"The photo itself, with {named} moved"
    return Grid(title, note, [name for name, _ in columns], rows).draw()


def _pixels(images: Tensor) -> Pixels:
    made: Pixels = to_bytes(images).cpu().numpy()
    return made
