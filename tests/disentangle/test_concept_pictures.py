"""Sampling, inversion, attention and the pictures made of them, on a briefly trained model."""

import functools
import io

import numpy as np
import pytest
import torch
from PIL import Image

from d2cp.config.strict import changed
from d2cp.core.progress import progress
from d2cp.disentangle import attention, canvas
from d2cp.disentangle import concept_pictures as pictures
from d2cp.disentangle import sampling as sample
from d2cp.disentangle.concept_training import train_concepts


@pytest.fixture(scope="module")
def model(toy):
    from d2cp.config.disentangle import DisentangleConfig

    config = changed(
        DisentangleConfig(),
        {
            "size": 16,
            "concepts": 4,
            "encoder.width": 4,
            "encoder.hidden": 16,
            "tokens.hidden": (8,),
            "tokens.dim": 8,
            "tokens.gain": 2.0,
            "unet.channels": (16,),
            "unet.attention": (0,),
            "unet.heads": 2,
            "unet.sketch": 16,
            "noise_bias": 3.0,
            "steps": 120,
            "batch": 16,
            "warmup": 10,
            "lr": 5e-3,
            "ema.decay": 0.9,
            "guide.steps": 60,
            "guide.width": 8,
            "ddim_steps": 20,
        },
    )
    show = functools.partial(progress, quiet=True)
    return train_concepts(toy.images, toy.rows, toy.y, config, 0, progress=show)


def test_the_same_noise_and_concepts_draw_the_same_image(model, toy):
    subjects = pictures.encode(model, toy.images, toy.rows[:3], 0)
    first = sample.draw(model, subjects.scalars, subjects.noise)
    assert torch.equal(first, sample.draw(model, subjects.scalars, subjects.noise))
    alone = sample.start_noise(model, toy.rows[2:3], 0)
    assert torch.equal(alone[0], subjects.noise[2])
    assert not torch.equal(sample.start_noise(model, toy.rows[2:3], 1), alone)


def test_an_inverted_image_is_drawn_again(model, toy, monkeypatch):
    """Exactly so where the predicted noise is the same on the way up and down."""
    noise = sample.start_noise(model, toy.rows[:8], 7)
    monkeypatch.setattr(model, "denoise", lambda z, t, tokens: noise)
    subjects = pictures.encode(model, toy.images, toy.rows[:8], 0, inverted=True)
    own = sample.draw(model, subjects.scalars, subjects.noise)
    torch.testing.assert_close(own, subjects.images, rtol=0, atol=1e-3)
    fresh = sample.draw(model, subjects.scalars, sample.start_noise(model, toy.rows[:8], 0))
    assert (fresh - subjects.images).abs().mean() > 0.1


def test_swapping_moves_only_the_named_concepts():
    scalars, donors = torch.zeros(2, 4), torch.ones(2, 4)
    assert sample.swapped(scalars, donors, [1, 3]).tolist() == [[0, 1, 0, 1]] * 2
    assert scalars.sum() == 0


def test_swapping_the_guided_concept_changes_the_colour(model, toy):
    zero, one = (toy.rows[toy.a == value][:16] for value in (0, 1))
    subjects = pictures.encode(model, toy.images, zero, 0)
    donors = pictures.encode(model, toy.images, one, 0)
    changed = sample.swapped(subjects.scalars, donors.scalars, [3])

    def red_over_green(images):
        return (images[:, 0] - images[:, 1]).mean().item()

    real = red_over_green(subjects.images)
    kept = red_over_green(sample.draw(model, subjects.scalars, subjects.noise))
    moved = red_over_green(sample.draw(model, changed, subjects.noise))
    assert kept > 0.4 * real > 0 > -0.4 * real > moved


def test_attention_of_a_place_sums_to_one(model, toy):
    subjects = pictures.encode(model, toy.images, toy.rows[:2], 0)
    maps = attention.attention_maps(model, subjects.images, subjects.scalars, subjects.noise)
    assert maps.shape == (2, 4, 16, 16)
    torch.testing.assert_close(maps.sum(1), torch.ones(2, 16, 16), rtol=1e-4, atol=1e-4)
    assert not any(m._forward_hooks for m in model.denoiser.modules())


def test_attention_weights_literally():
    query, key = torch.randn(1, 4, 6), torch.randn(1, 3, 6)
    grid = attention._weights(query, key, heads=2)
    for place in range(4):
        mean = torch.zeros(3)
        for head in range(2):
            part = slice(3 * head, 3 * head + 3)
            mean += torch.softmax(query[0, place, part] @ key[0, :, part].T / 3**0.5, 0) / 2
        torch.testing.assert_close(grid[0, :, place // 2, place % 2], mean)


def test_every_picture_is_a_png_with_room_for_its_cells(model, toy, tmp_path):
    subjects = pictures.encode(model, toy.images, toy.rows[:3], 0)
    donors = pictures.encode(model, toy.images, toy.rows[3:6], 0)
    scalars = np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32)
    labels = ["left", "right", "left"]
    made = {
        "swap": pictures.swap_picture(model, subjects, donors, [3], labels),
        "traversal": pictures.traversal_picture(model, subjects, 3, scalars, labels),
        "extremes": pictures.extremes_picture(
            toy.images, toy.rows, toy.y, scalars[:, 0].repeat(6), ["left", "right"], "Extremes"
        ),
        "attention": pictures.attention_picture(model, subjects, [0, 3], labels),
    }
    for name, image in made.items():
        canvas.save_png(image, tmp_path / f"{name}.png")
        read = Image.open(io.BytesIO((tmp_path / f"{name}.png").read_bytes()))
        assert read.size == image.size and min(read.size) > 200
        assert np.asarray(read).std() > 5


def test_extremes_are_the_least_and_greatest_of_each_class():
    images = np.arange(12, dtype=np.uint8)[:, None, None, None] * np.ones((1, 8, 8, 3), np.uint8)
    seen = []

    class Spy:
        def __getitem__(self, rows):
            seen.append(rows.tolist())
            return images[rows]

    values = np.array([5, 1, 9, 3, 7, 2, 8, 0, 6, 4, 11, 10], dtype=np.float32)
    y = np.arange(12) % 2
    pictures.extremes_picture(Spy(), np.arange(12), y, values, ["a", "b"], "t", each=2)
    expected = []
    for label in (0, 1):
        order = sorted(np.flatnonzero(y == label), key=lambda i: values[i])
        expected += [[int(i) for i in order[:2]], [int(i) for i in order[-2:]]]
    assert seen == expected


def test_grid_places_cells_and_leaves_gaps_empty():
    red = np.zeros((4, 4, 3), np.uint8)
    red[..., 0] = 255
    grid = canvas.Grid("Title", "A note.", ["a", "b"], [("row", [red, None])], cell=40)
    pixels = np.asarray(grid.draw())
    assert (pixels == (255, 0, 0)).all(-1).sum() == 40 * 40


def test_heat_keeps_cold_places_grey():
    pixels = np.full((2, 2, 3), (200, 10, 90), np.uint8)
    out = canvas.heat_over(pixels, np.array([[0, 1], [0, 1]], np.float32))
    assert len(set(out[0, 0].tolist())) == 1 and len(set(out[0, 1].tolist())) == 3
