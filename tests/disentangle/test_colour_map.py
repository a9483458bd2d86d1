"""A map of colours: least squares by the normal equations, then as strong as real colours are."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from d2cp.disentangle.colour_map import MOST, affine_fit, fit_colour_map, to_real


def literal_fit(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(A^T A)^-1 A^T y with a column of ones, entry by entry."""
    design = np.c_[x, np.ones(len(x))]
    gram, right = np.zeros((4, 4)), np.zeros((4, 3))
    for row, target in zip(design, y, strict=True):
        for i in range(4):
            for j in range(4):
                gram[i, j] += row[i] * row[j]
            right[i] += row[i] * target
    found = np.linalg.solve(gram, right)
    return found[:3], found[3]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_least_squares_is_the_literal_one(seed: int) -> None:
    draw = np.random.default_rng(seed)
    x, y = draw.random((50, 3)), draw.random((50, 3))
    weight, offset = affine_fit(x, y)
    slow, shift = literal_fit(x, y)
    assert np.allclose(weight, slow, atol=1e-8) and np.allclose(offset, shift, atol=1e-8)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_colours_become_as_strong_as_real_ones_along_their_directions(seed: int) -> None:
    draw = np.random.default_rng(seed)
    turn, _ = np.linalg.qr(draw.normal(size=(3, 3)))
    real = draw.normal(size=(400, 3)) * [1, 0.6, 0.3] @ turn
    pale = real @ np.diag([0.7, 0.7, 0.7]) + draw.normal(size=3)
    made = (pale - pale.mean(0)) @ to_real(pale, real)
    assert np.allclose(made, real - real.mean(0), atol=1e-6)


def test_pale_red_edits_of_green_ink_become_the_red_of_real_images() -> None:
    draw = np.random.default_rng(0)
    ink = draw.random((500, 1)) * (draw.random((500, 1)) < 0.3)
    green, red = ink * [0, 1, 0], draw.permutation(ink) * [1, 0, 0]
    edits = ink * [0.8, 0.1, 0] + 0.02 * draw.random((500, 3))  # paler, and a trace of the green
    found = fit_colour_map(green, edits, red)
    assert found.explained > 0.9
    pixels = np.array([[[0, 200, 0], [0, 0, 0]]], np.uint8)
    turned = found(pixels)
    assert turned.dtype == np.uint8 and turned.shape == pixels.shape
    assert abs(int(turned[0, 0, 0]) - 200) <= 8 and turned[0, 0, 1] == 0
    assert turned[0, 1].max() <= 4


def test_an_edit_that_is_no_colour_is_not_explained() -> None:
    draw = np.random.default_rng(0)
    before, after = draw.random((800, 3)), draw.random((800, 3))
    assert fit_colour_map(before, after, after).explained < 0.1


def test_what_edits_hardly_have_is_not_stretched_without_end() -> None:
    real = np.random.default_rng(0).normal(size=(300, 3))
    assert np.allclose(to_real(np.zeros((300, 3)), real), MOST * np.eye(3))
