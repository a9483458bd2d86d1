"""Details that recur, against a literal version; and that they are found without a label."""

import math

import numpy as np
import pytest
import torch

from d2cp.scan.lenses.templates import (
    EPSILON,
    FREQUENCIES,
    STRIDE,
    Templates,
    learn_templates,
    left_out,
    spectra,
    to_fine,
    two_heaps,
)
from natural_scenes import scenes


def test_frequencies_are_those_of_the_literal_cosine_transform() -> None:
    side = 9
    fine = scenes(2, 24)
    places = (24 - side) // STRIDE + 1
    found, out = spectra(fine[1], side), left_out(side)
    assert found.shape == (len(out), places**2)
    top, left = 3, 5
    piece = fine[1, STRIDE * top : STRIDE * top + side, STRIDE * left : STRIDE * left + side]
    contrast = math.sqrt(float(piece.var(unbiased=False)) + EPSILON)
    count = round(FREQUENCIES * side)
    literal = []
    for u in range(count):
        for v in range(count):
            assert out[len(literal)] == (not 0 < u * u + v * v <= (count - 0.5) ** 2)
            total = 0.0
            for i in range(side):
                for j in range(side):
                    total += (
                        float(piece[i, j])
                        * math.cos(math.pi * (i + 0.5) * u / side)
                        * math.cos(math.pi * (j + 0.5) * v / side)
                    )
            scale = 2 / side * math.prod(math.sqrt(0.5) for f in (u, v) if f == 0)
            literal.append(total * scale / (contrast * side))
    assert np.allclose(found[:, top * places + left], literal, atol=1e-4)


def test_heaps_are_told_from_one_heap() -> None:
    draw = np.random.default_rng(0)
    one = draw.normal(0, 1, 4000)
    two = np.where(np.arange(4000) % 4 == 0, 5.0, 0.0) + draw.normal(0, 1, 4000)
    columns = np.stack([one, two, -two], axis=1).astype(np.float32)
    plain, there, turned = two_heaps(columns)
    assert plain == pytest.approx(1 / 3, abs=0.03) and there > 0.5
    assert turned == pytest.approx(there, abs=1e-4)
    columns[:40] = np.nan
    assert two_heaps(columns)[1] == pytest.approx(there, abs=0.02)


@pytest.mark.parametrize("share", [0.25, 0.5, 0.8])
def test_a_label_on_some_pictures_is_a_template_and_scenery_is_not(share: float) -> None:
    """Faint letters in changing places. The learnt templates are told nothing about them."""
    fine = scenes(120)
    draw = np.random.default_rng(1)
    there = np.arange(120) < 120 * share
    letters = torch.zeros(12, 20)
    letters[2:10, 2:4] = letters[2:10, 8:10] = letters[5:7, 2:10] = letters[2:4, 12:18] = 1
    letters[2:10, 14:16] = 1
    for n in np.flatnonzero(there):
        y, x = draw.integers(0, 48), draw.integers(0, 40)
        fine[n, y : y + 12, x : x + 20] += 0.25 * letters
    found = learn_templates(fine, 20, 0, tried=600)
    assert found.templates.shape[0] == 20
    best = found.largest(fine).numpy()
    ranks = best.argsort(0).argsort(0)[there].mean(0)
    middle, top = (120 - 1) / 2, 120 - 1 - (there.sum() - 1) / 2
    told = (ranks - middle) / (top - middle)  # 1: every labelled picture before every other
    assert told.max() > 0.8
    again = learn_templates(fine, 20, 0, tried=600)
    assert torch.equal(found.templates, again.templates)


def test_largest_is_the_largest_response_and_templates_are_kept() -> None:
    fine = scenes(3)
    made = learn_templates(fine, 5, 0, tried=40)
    answer = made.responses(fine)
    assert torch.allclose(answer.amax((2, 3)), made.largest(fine), atol=1e-6)
    assert float(answer.abs().max()) <= 1 + 1e-4
    kept = Templates.from_arrays(made.arrays())
    assert kept.side == made.side and torch.equal(kept.responses(fine), answer)


def test_pictures_are_looked_at_in_grey_and_not_larger_than_needed() -> None:
    draw = torch.Generator().manual_seed(0)
    large, small = (torch.rand(2, 3, side, side, generator=draw) for side in (144, 28))
    assert to_fine(large).shape == (2, 120, 120) and to_fine(small).shape == (2, 28, 28)
    turned = small.clone()
    turned[:, 0] += 0.1
    turned[:, 2] -= 0.1 * 0.299 / 0.114
    assert torch.allclose(to_fine(small), to_fine(turned), atol=1e-5)
