"""Coloured details: against a literal version, blind to what they should not see, and on a map."""

import math

import torch
import torch.nn.functional as F

from d2cp.scan.coloured_heat import coloured_heat
from d2cp.scan.lenses import coloured
from d2cp.scan.lenses.windows import window_means
from d2cp.scan.properties import properties
from d2cp.scan.transplant import lay, window_of
from natural_scenes import scenes


def pictures(n: int = 3, side: int = 40) -> torch.Tensor:
    """Grey scenes in faint, changing colours."""
    grey = scenes(n, side)[:, None]
    waves = torch.sin(torch.arange(side) / 5.0)[None, None, None, :]
    return (0.3 + 0.4 * grey + 0.02 * waves * torch.tensor([1.0, 0, -1.0])[:, None, None]).clamp(
        0, 1
    )


def with_spot(images: torch.Tensor, top: int, left: int) -> torch.Tensor:
    """An orange spot of 4 × 4."""
    made = images.clone()
    made[:, :, top : top + 4, left : left + 4] = torch.tensor([0.9, 0.5, 0.1])[:, None, None]
    return made


def test_window_means_are_those_of_pooling() -> None:
    x = torch.rand(2, 3, 23, 31, generator=torch.Generator().manual_seed(0))
    for size, stride in ((7, 1), (5, 2), (10, 2), (23, 1)):
        assert torch.allclose(
            window_means(x, size, stride), F.avg_pool2d(x, size, stride), atol=1e-6
        )


def test_standing_out_is_what_it_says_pixel_by_pixel() -> None:
    detail = torch.randn(3, 5, 6, generator=torch.Generator().manual_seed(1)) * 0.1
    found = coloured.standing_out(detail[None])[0]
    yellow_to_blue = (-0.1687, -0.3313, 0.5)
    away = [
        sum(w * float(detail[c, i, j]) for c, w in enumerate(yellow_to_blue))
        for i in range(5)
        for j in range(6)
    ]
    floor = coloured.FLOOR
    usual = math.sqrt(sum(a * a for a in away) / 30 + floor**2)
    for hue, sign in (("blue", 1), ("yellow", -1)):
        k = coloured.HUES.index(hue)
        farthest = max(sign * a for a in away)
        fourth = sum(max(0.0, sign * a) ** 4 for a in away) / 30
        assert math.isclose(float(found[k]), math.log((farthest + floor) / usual), abs_tol=1e-4)
        literal = math.log((fourth + floor**4) ** 0.25 / usual)
        assert math.isclose(float(found[10 + k]), literal, abs_tol=1e-4)


def test_hues_are_named_as_people_see_them() -> None:
    pure = {
        "blue": (0, 0, 1),
        "purple": (0.6, 0, 0.7),
        "red": (1, 0, 0),
        "orange": (1, 0.5, 0),
        "yellow": (1, 1, 0),
        "green": (0, 1, 0),
        "turquoise": (0, 1, 0.8),
        "sky-blue": (0, 0.5, 1),
    }
    draw = torch.Generator().manual_seed(2)
    speckled = (0.5 + 0.05 * torch.randn(1, 3, 36, 36, generator=draw)).clamp(0, 1)
    for hue, colour in pure.items():
        picture = speckled.clone()
        picture[0, :, 10:13, 20:23] = torch.tensor(colour, dtype=torch.float32)[:, None, None]
        found = {k: float(v[0]) for k, v in coloured.hues(picture).items() if k in pure}
        assert max(found, key=lambda k: found[k]) == hue


def test_a_coloured_part_is_seen_wherever_it_is() -> None:
    images = pictures()
    one, two = (coloured.coloured(with_spot(images, *at)) for at in ((5, 6), (28, 19)))
    plain = coloured.coloured(images)
    assert ((one - two).norm(dim=1) < 0.35 * (one - plain).norm(dim=1)).all()
    orange = coloured.HUES.index("orange")
    assert (one[:, orange] > plain[:, orange] + 0.3).all()
    assert (
        properties(with_spot(images, 5, 6))["orange part"] > properties(images)["orange part"]
    ).all()


def test_stronger_colours_and_another_light_change_little() -> None:
    images = with_spot(pictures(), 12, 12)
    plain = coloured.coloured(images)
    grey = images.mean(1, keepdim=True)
    spot = (plain - coloured.coloured(pictures())).norm(dim=1)
    for other in (0.5 * images + 0.5 * grey, images * torch.tensor([0.9, 1.0, 1.0])[:, None, None]):
        assert ((coloured.coloured(other) - plain).norm(dim=1) < 0.35 * spot).all()


def test_heat_is_on_what_stands_out() -> None:
    images = with_spot(pictures(), 20, 8)
    weight = torch.zeros(len(images), 3 * 20)
    weight[:, coloured.HUES.index("orange") :: 20] = 1.0
    heat = coloured_heat(weight, images)
    assert heat.shape == (3, 40, 40) and float(heat.min()) >= 0
    inside = heat[:, 18:26, 6:14].sum((1, 2)) / heat.sum((1, 2))
    assert (inside > 0.9).all()
    assert float(coloured_heat(0 * weight, images).abs().max()) == 0


def test_of_a_coloured_detail_only_what_stands_out_is_laid_into_a_picture() -> None:
    ours, theirs = pictures(2), 0.5 * with_spot(pictures(2), 20, 8) + 0.4
    height, width = window_of(40)
    corner = (16, 5)
    window = (slice(None), slice(None), slice(16, 16 + height), slice(5, 5 + width))
    made = lay("coloured detail", ours, theirs, [corner] * 2)
    outside = torch.ones(40, 40, dtype=torch.bool)
    outside[window[2:]] = False
    assert torch.equal(made[..., outside], ours[..., outside])
    assert torch.equal(lay("local pattern", ours, theirs, [corner] * 2)[window], theirs[window])
    # The spot comes along, the donor's brightness does not.
    spot = (slice(None), slice(None), slice(20, 24), slice(8, 12))
    assert (made[spot][:, 0].mean((1, 2)) > made[spot][:, 2].mean((1, 2)) + 0.15).all()
    moved = (made[window].mean((1, 2, 3)) - ours[window].mean((1, 2, 3))).abs()
    assert (
        moved < 0.3 * (theirs[window].mean((1, 2, 3)) - ours[window].mean((1, 2, 3))).abs()
    ).all()
    whole = coloured.give_detail(ours, theirs)
    assert torch.allclose(coloured.give_detail(ours, ours), ours, atol=1e-5)
    assert (whole - ours).abs().max() > 0.1
