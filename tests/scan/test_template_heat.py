"""Heat of repeated details: pixel by pixel against a literal version, and on a label's strokes."""

import math

import numpy as np
import torch

from d2cp.scan.bank import REPEATED, Bank
from d2cp.scan.finding import Reader
from d2cp.scan.heat import heat_maps
from d2cp.scan.lenses.templates import STRIDE, Templates, learn_templates, spectra
from d2cp.scan.template_heat import template_heat
from natural_scenes import scenes


def test_a_match_is_shared_out_by_what_each_pixel_adds_to_it() -> None:
    fine = scenes(3, 24)
    templates = learn_templates(fine, 4, 0, tried=40)
    side = templates.side
    weight = torch.tensor([[1.0, 2.0, -1.0, 0.5], [0.0, 0.0, 0.0, 3.0]])
    usual = torch.tensor([0.1, 0.2, 0.0, 5.0])  # the last template never matches better than that
    found = template_heat(templates, weight, usual, fine[:2])
    answer = templates.responses(fine[:2])
    for picture in range(2):
        expected = torch.zeros(24, 24)
        for k in range(4):
            place = int(answer[picture, k].argmax())
            top, left = (STRIDE * n for n in divmod(place, answer.shape[3]))
            match = float(answer[picture, k].max())
            push = max(0.0, float(weight[picture, k])) * max(0.0, match - float(usual[k]))
            piece = fine[picture, top : top + side, left : left + side]
            added = (literal_slopes(templates, k) * (piece - piece.mean())).clamp(min=0)
            expected[top : top + side, left : left + side] += push * added / added.sum()
        assert torch.allclose(found[picture], expected, atol=1e-5)
    assert float(found[0].sum()) > 0 and float(found[1].abs().max()) == 0


def literal_slopes(templates: Templates, k: int) -> torch.Tensor:
    """How far each pixel of a piece moves template k's product with its frequencies."""
    side, count = templates.side, math.isqrt(len(templates.mean))
    slopes = torch.zeros(side, side)
    for u in range(count):
        for v in range(count):
            share = float(templates.templates[k, u * count + v] / templates.spread[u * count + v])
            size = 2 / side * math.prod(math.sqrt(0.5) for f in (u, v) if f == 0)
            for i in range(side):
                for j in range(side):
                    slopes[i, j] += (
                        share
                        * size
                        * math.cos(math.pi * (i + 0.5) * u / side)
                        * math.cos(math.pi * (j + 0.5) * v / side)
                    )
    return slopes


def test_the_maximum_is_on_the_strokes_of_a_label_smaller_than_a_piece() -> None:
    """A flat bar in the upper part of the piece that a template was cut from: the heat is on the
    bar, not in the middle of the piece."""
    side, draw = 120, np.random.default_rng(0)
    fine, corners = scenes(8, side), []
    for picture in fine:
        y, x = (int(draw.integers(4, 80)) // 2 * 2 for _ in range(2))
        picture[y + 3 : y + 6, x + 4 : x + 24] += 0.6
        corners.append((y, x))
    plain = learn_templates(scenes(20, side), 1, 0, tried=20)
    (y, x), wide = corners[0], (side - plain.side) // STRIDE + 1
    white = (spectra(fine[0], plain.side) - plain.mean[:, None]) / plain.spread[:, None]
    piece = white[:, y // STRIDE * wide + x // STRIDE]
    cut = Templates(plain.side, plain.mean, plain.spread, (piece / piece.norm())[None])
    reader = Reader(
        weight={REPEATED: np.ones((1, 1), np.float32)},
        intercept=np.zeros(1, np.float32),
        centre={REPEATED: np.full(1, 0.2, np.float32)},
        scale={REPEATED: np.ones(1, np.float32)},
    )
    images = fine[1:, None].expand(-1, 3, -1, -1)
    maps = heat_maps(Bank((), cut), reader, REPEATED, images, [1] * 7, images[0])
    for heat, (y, x) in zip(maps, corners[1:], strict=True):
        row, column = divmod(int(heat.argmax()), side)
        assert y <= row < y + 9 and x + 4 <= column < x + 24
