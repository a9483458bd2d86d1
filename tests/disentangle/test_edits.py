"""Edits of the real photo: nothing moved changes nothing; a concept shows where it draws."""

import types

import numpy as np
import torch

from d2cp.disentangle.diffusion import alphas_cumprod, noise_from_z0
from d2cp.disentangle.edits import (
    DRAWS,
    MOST,
    SIGNAL,
    edit,
    edit_picture,
    edit_times,
    enlarged,
    gain_of,
)
from d2cp.disentangle.latent_space import PixelSpace


class Corner(torch.nn.Module):
    """A concept model that knows its concept: the first scalar is the brightness of a corner."""

    def __init__(self) -> None:
        super().__init__()
        self.space = PixelSpace(16, 2)
        self.config = types.SimpleNamespace(size=16)
        self.alpha_bar = alphas_cumprod("cosine", 200)

    def to_latents(self, images):
        return self.space.encode(images)

    def to_images(self, latents, *, quantise=True):
        return self.space.decode(latents)

    def concept_tokens(self, scalars):
        return scalars

    def denoise(self, z_t, t, tokens):
        z0 = torch.zeros_like(z_t)
        z0[:, :, :2, :2] = tokens[:, :1, None, None]
        return noise_from_z0(z0, z_t, self.alpha_bar[t])


def test_only_what_the_concept_draws_changes_and_by_as_much():
    model, rows = Corner(), np.arange(3)
    images = torch.rand(3, 3, 16, 16, generator=torch.Generator().manual_seed(0)) - 0.5
    own = torch.full((3, 4), 0.1)
    moved = own.clone()
    moved[:, 0] = 0.4
    change = edit(model, images, own, moved, rows, 0)
    assert torch.allclose(change[:, :, :4, :4], torch.tensor(0.3), atol=1e-4)
    assert change[:, :, 4:].abs().max() < 1e-4 and change[..., 4:].abs().max() < 1e-4
    assert enlarged(change).abs().max() > 0.59
    assert gain_of(change) == 2 and gain_of(change / 100) == MOST and gain_of(3 * change) == 1
    picture = edit_picture(images, change, ["a", "b", "c"], "concept 0")
    assert picture.width >= 520


def test_nothing_moved_nothing_changed():
    images = torch.zeros(1, 3, 16, 16)
    own = torch.ones(1, 4)
    change = edit(Corner(), images, own, own, np.arange(1), 0)
    assert change.abs().max() == 0
    assert enlarged(change).abs().max() == 0


def test_draws_have_the_signal_they_should():
    bar = alphas_cumprod("cosine", 1000)
    times = edit_times(bar)
    assert len(times) == DRAWS and len(set(times)) == DRAWS
    assert all(SIGNAL[0] <= float(bar[t]) <= SIGNAL[1] for t in times)
    assert edit_times(torch.tensor([0.9, 0.2])) == [1] * DRAWS
