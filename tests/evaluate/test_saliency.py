"""Share of a map inside a mask, against a sum over pixels written out."""

from __future__ import annotations

import math

import torch

from d2cp.evaluate.saliency import area, mass_inside, stroke


def literal(heat: torch.Tensor, mask: torch.Tensor) -> float:
    """One map: every pixel has its patch's heat divided by the pixels of a patch."""
    high, wide = mask.shape[0] // heat.shape[0], mask.shape[1] // heat.shape[1]
    inside = whole = 0.0
    for y in range(mask.shape[0]):
        for x in range(mask.shape[1]):
            mass = float(heat[y // high, x // wide]) / (high * wide)
            whole += mass
            inside += mass if mask[y, x] else 0.0
    return inside / whole


def test_the_share_is_that_of_a_sum_over_pixels():
    generator = torch.Generator().manual_seed(0)
    heat = torch.rand(5, 4, 3, generator=generator, dtype=torch.float64)
    mask = torch.rand(5, 12, 6, generator=generator) > 0.6
    found = mass_inside(heat, mask)
    for one, h, m in zip(found, heat, mask, strict=True):
        assert math.isclose(float(one), literal(h, m), rel_tol=1e-9)


def test_an_even_map_has_the_masks_area_and_an_empty_one_has_no_share():
    mask = torch.zeros(2, 4, 4, dtype=torch.bool)
    mask[:, :2, :1] = True
    heat = torch.stack([torch.ones(2, 2), torch.zeros(2, 2)]).double()
    found = mass_inside(heat, mask)
    assert float(found[0]) == float(area(mask)[0]) == 2 / 16
    assert torch.isnan(found[1])


def test_a_stroke_is_found_in_any_colour():
    images = torch.zeros(2, 3, 2, 2)
    images[0, 0, 0, 1] = 1.0
    images[1, 1, 1, 0] = 1.0
    images[1, 2, 0, 0] = 0.1  # the faint edge of a stroke
    assert stroke(images).tolist() == [
        [[False, True], [False, False]],
        [[False] * 2, [True, False]],
    ]
