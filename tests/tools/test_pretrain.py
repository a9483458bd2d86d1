"""The glyph bank, the distortion and one step of the training of the embedded ViT."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from d2cp.backbone import load_backbone
from d2cp.core.rng import torch_generator
from tools.pretrain_backbone import glyphs
from tools.pretrain_backbone.distort import distort, paint, random_colours
from tools.pretrain_backbone.glyphs import GlyphBank, build_bank, is_letter
from tools.pretrain_backbone.model import LEVELS, colour_class, colour_entropy
from tools.pretrain_backbone.strokes import UNITS_PER_PIXEL, distance_to, thin
from tools.pretrain_backbone.train import (
    COLOUR,
    SHAPE,
    Sampler,
    learning_rate,
    pretrain_colour,
    pretrain_shape,
)


@pytest.fixture(scope="module")
def bank() -> GlyphBank:
    """The letters of two small faces (the whole bank takes half a minute)."""
    files = glyphs.font_files()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(glyphs, "font_files", lambda: {n: files[n] for n in ("cmr10", "cmss10")})
        return build_bank()


def test_no_character_of_any_font_is_a_number() -> None:
    characters = {c for path in glyphs.font_files().values() for c in glyphs.characters_of(path)}
    assert len(characters) > 2000
    assert {"A", "я", "ش", "ა"} <= characters
    for character in characters:
        assert unicodedata.category(character).startswith("L")
        assert unicodedata.digit(character, None) is None
        assert unicodedata.numeric(character, None) is None


@pytest.mark.parametrize("character", [*"0123456789", "²", "Ⅷ", "٣", "𝟕", "ƻ", "é", "ﬁ", "+"])
def test_what_is_no_letter(character: str) -> None:
    assert not is_letter(character)


def test_bank_merges_look_alikes_and_keeps_the_rest(bank: GlyphBank) -> None:
    class_of = {c: i for i, members in enumerate(bank.classes) for c in members}
    assert all(class_of[c] == class_of[c.upper()] for c in "osvz")
    assert len({class_of[c] for c in "ABEGMRaegk"}) == 10
    assert np.all(np.diff(bank.label) >= 0)
    assert [class_of[character] for character in bank.characters] == bank.label.tolist()


def test_thinning_leaves_a_line_one_pixel_wide_and_whole() -> None:
    bar = np.zeros((1, 20, 20), dtype=bool)
    bar[0, 3:17, 8:13] = True
    line = thin(bar)[0]
    assert line.sum(axis=1).tolist() == [0] * 5 + [1] * 9 + [0] * 6
    assert not (line & ~bar[0]).any()


def test_distance_is_in_units_per_pixel() -> None:
    dot = np.zeros((1, 9, 9), dtype=bool)
    dot[0, 4, 4] = True
    field = distance_to(dot)[0]
    assert (field[4, 4], field[4, 7]) == (0, 3 * UNITS_PER_PIXEL)
    assert field[7, 8] == 5 * UNITS_PER_PIXEL


def test_a_batch_is_a_function_of_seed_and_step(bank: GlyphBank) -> None:
    sampler = Sampler(bank)

    def images(seed: int, step: int) -> torch.Tensor:
        return sampler.batch(16, 1.0, 1.0, torch_generator(seed, "test", step)).images

    assert torch.equal(images(0, 5), images(0, 5))
    assert not torch.equal(images(0, 5), images(0, 6))
    assert not torch.equal(images(0, 5), images(1, 5))


def test_distortion_changes_the_shape_and_keeps_ink(bank: GlyphBank) -> None:
    skeleton, filled = torch.from_numpy(bank.skeleton), torch.from_numpy(bank.filled)
    plain = distort(skeleton, filled, 0.0, torch_generator(0, "test"))
    strong = distort(skeleton, filled, 1.0, torch_generator(0, "test"))
    assert plain.shape == strong.shape == (len(bank.label), 1, 28, 28)
    assert float((plain - strong).abs().mean()) > 0.02
    for coverage in (plain, strong):
        assert float(coverage.min()) >= 0
        assert float(coverage.max()) <= 1
        assert bool((coverage.flatten(1).amax(1) > 0.3).float().mean() > 0.97)


def test_colours_can_be_told_apart_and_most_grounds_are_black() -> None:
    ink, ground = random_colours(4000, 1.0, torch_generator(0, "test"))
    assert float((ink - ground).abs().amax(1).min()) > 0.3
    assert 0.6 < float((ground.amax(1) == 0).float().mean()) < 0.72
    red = (ink[:, 0] > 0.5) & (ink[:, 1:].amax(1) == 0) & (ground.amax(1) == 0)
    assert red.sum() > 50
    white, black = random_colours(50, 0.0, torch_generator(0, "test"))
    assert bool((white == 1).all())
    assert bool((black == 0).all())


def test_paint_puts_ink_where_the_pen_was() -> None:
    coverage = torch.tensor([[[[0.0, 1.0, 0.5]]]])
    image = paint(coverage, torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([[0.0, 0.0, 1.0]]))
    assert image[0, :, 0].T.tolist() == [[0, 0, 1], [1, 0, 0], [0.5, 0, 0.5]]


def test_learning_rate_rises_then_falls_to_zero() -> None:
    settings = replace(SHAPE, steps=1000, warm_up=100)
    rates = [learning_rate(step, settings) for step in range(1000)]
    assert int(np.argmax(rates)) in (99, 100)
    assert max(rates) == pytest.approx(settings.lr)
    assert rates[-1] < 1e-5 * 2


def colour_losses(folder: Path, phase: str) -> list[float]:
    lines = (folder / f"training-log-{phase}.csv").read_text().splitlines()
    column = lines[0].split(",").index("colour_loss")
    return [float(line.split(",")[column]) for line in lines[1:]]


def test_training_learns_colour_and_repeats(bank: GlyphBank, tmp_path: Path) -> None:
    short = {"batch": 32, "warm_up": 5, "ramp": 0.0, "log_every": 5, "average": 0.5}
    shape, colour = (
        replace(SHAPE, steps=20, **short),
        replace(COLOUR, steps=30, heads_only=10, **short),
    )
    for name in ("a", "b"):
        pretrain_shape(tmp_path / name / "shape", bank, shape)
        pretrain_colour(tmp_path / name / "shape", tmp_path / name, bank, colour)
    for part in ("shape/model.safetensors", "model.safetensors"):
        weights = [(tmp_path / name / part).read_bytes() for name in ("a", "b")]
        assert weights[0] == weights[1]
    first = colour_losses(tmp_path / "a" / "shape", "shape")
    assert len(first) == 4
    assert first[-1] < 0.6 * first[0]
    second = colour_losses(tmp_path / "a", "colour")
    assert len(second) == 6
    assert second[-1] < 0.8 * second[0], second
    backbone = load_backbone(tmp_path / "a")
    assert (backbone.width, backbone.depth, backbone.image_size) == (128, 6, 28)
    assert backbone.mean == (0.5, 0.5, 0.5)


def test_colour_classes_are_cells_of_rgb() -> None:
    rgb = torch.tensor([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.3], [0.8, 0.3, 0.6]])
    assert colour_class(rgb).tolist() == [0, LEVELS**3 - 1, 1, 3 * 16 + 1 * 4 + 2]


def test_colour_entropy_reads_ink_then_ground() -> None:
    ink, ground = torch.tensor([[1.0, 1.0, 1.0]]), torch.tensor([[0.0, 0.0, 0.0]])
    colours = torch.zeros(1, 2 * LEVELS**3)
    colours[0, LEVELS**3 - 1] = colours[0, LEVELS**3] = 20.0
    assert float(colour_entropy(colours, ink, ground)) < 1e-4
    assert float(colour_entropy(colours, ground, ink)) > 30
