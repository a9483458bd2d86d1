"""Heat maps lie on the cue, pairs are alike but for the finding, transplants are what they say."""

import numpy as np
import pytest
import torch

from d2cp.scan.bank import Bank
from d2cp.scan.finding import Reader
from d2cp.scan.heat import heat_maps, towards
from d2cp.scan.lenses import simple
from d2cp.scan.lenses.patches import learn_dictionary
from d2cp.scan.pairs import matched_pairs, without_direction
from d2cp.scan.patch_heat import largest_drop, mean_drop, touching
from d2cp.scan.transplant import telling_windows, window_of
from d2cp.scan.transplants import frame
from few_templates import few_templates

SMALL = Bank(
    (
        learn_dictionary(
            torch.rand(4, 3, 16, 16, generator=torch.Generator().manual_seed(0)),
            4,
            2,
            0,
            patches=50,
        ),
    ),
    few_templates(),
)


def reader_of(lens: str, weight: np.ndarray) -> Reader:
    wide = weight.astype(np.float32)[:, None]
    return Reader(
        weight={lens: wide},
        intercept=np.zeros(1, np.float32),
        centre={lens: np.zeros(len(wide), np.float32)},
        scale={lens: np.ones(len(wide), np.float32)},
    )


@pytest.mark.parametrize("side", [0, 1])
def test_heat_of_a_layout_lens_is_where_its_weights_are(side: int) -> None:
    """The score is the brightness of one cell of the thumbnail; the picture differs from the usual
    one everywhere, upwards for value 1 and downwards for value 0."""
    images = torch.full((2, 3, 48, 48), 0.9 if side else 0.1)
    weight = np.zeros((3, simple.GRID, simple.GRID))
    weight[:, 6, 1] = 1.0
    usual = torch.full((3, 48, 48), 0.5)
    maps = heat_maps(
        SMALL, reader_of("layout", weight.ravel()), "layout", images, [side] * 2, usual
    )
    row, column = divmod(int(maps[0].argmax()), 48)
    assert 36 <= row < 42 and 6 <= column < 12
    assert maps.shape == (2, 48, 48) and maps.max() == 1 and maps.min() == 0
    assert maps[0, :24].max() == 0


def test_the_telling_window_covers_what_the_score_reads() -> None:
    """Grey pictures with a patch that one entry of the dictionary was made of, at a known place."""
    bank = Bank(
        (learn_dictionary(torch.rand(6, 3, 72, 72, generator=_drawn(0)), 10, 8, 0, patches=400),),
        few_templates(),
    )
    weight = np.zeros(8)
    weight[3] = 1.0
    dictionary = bank.dictionaries[0]
    pattern = torch.einsum("m,mcij->cij", dictionary.centres[3], dictionary.basis)
    images = torch.full((2, 3, 144, 144), 0.5)
    large = torch.nn.functional.interpolate(pattern[None], scale_factor=2.0)[0]
    for image, (top, left) in zip(images, ((12, 90), (100, 8)), strict=True):
        image[:, top : top + 20, left : left + 20] += 0.3 * large / large.abs().max()
    found = telling_windows(bank, reader_of("local pattern", weight), images, 1)
    height, width = window_of(144)
    for (top, left), (y, x) in zip(found, ((12, 90), (100, 8)), strict=True):
        rows = min(y + 20, top + height) - max(y, top)
        columns = min(x + 20, left + width) - max(x, left)
        assert min(rows, columns) >= 17  # of 20
        assert 0 <= top <= 144 - height and 0 <= left <= 144 - width


def _drawn(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_windows_are_left_out_as_if_their_patches_were_struck_out() -> None:
    draw = torch.Generator().manual_seed(1)
    patch, window, places = 5, 4, 6
    side = 2 * (places - 1) + patch
    answer = torch.randn(2, 3, places, places, generator=draw)
    weight = torch.randn(2, 3, generator=draw)
    corners = torch.arange(0, side - window + 1, 2)
    first, last = touching(corners, window, patch, places)
    fast = largest_drop(answer, weight, first, last), mean_drop(answer, weight, first, last)
    for m, top in enumerate(corners.tolist()):
        for n, left in enumerate(corners.tolist()):
            kept = torch.ones(places, places, dtype=torch.bool)
            for i in range(places):
                for j in range(places):
                    rows = 2 * i < top + window and 2 * i + patch > top
                    kept[i, j] = not (rows and 2 * j < left + window and 2 * j + patch > left)
            drop = answer.flatten(2).amax(2) - answer[:, :, kept].amax(2)
            assert torch.allclose(fast[0][:, m, n], (drop * weight).sum(1), atol=1e-5)
            inside = answer.clamp(min=0).square()[:, :, ~kept].sum(2) / places**2
            assert torch.allclose(fast[1][:, m, n], (inside * weight).sum(1), atol=1e-5)


def test_towards_is_the_side_s_own_score() -> None:
    one = torch.tensor([[2.0], [3.0]])
    assert towards(one, [1, 0]).tolist() == [2.0, -3.0]
    assert towards(torch.tensor([[1.0, 5.0, 7.0]]), [1]).tolist() == [5.0]


def test_pairs_match_what_the_finding_does_not_say() -> None:
    draw = np.random.default_rng(0)
    n = 40
    y, kind = np.arange(n) % 2, draw.normal(size=(n, 5)).astype(np.float32)
    value = np.where(np.arange(n) % 10 < 6, y, 1 - y)
    features = np.concatenate([kind, kind], axis=1)
    features[:, 0] += 50 * value  # the cue dwarfs everything, and must not count
    twin = next(i for i in range(n) if value[i] != y[i])
    other = next(i for i in range(n) if y[i] == y[twin] and value[i] == y[i])
    features[twin, 1:] += 8  # like no other picture but its twin
    features[other] = features[twin]
    features[other, 0] += 50 * (value[other] - value[twin])
    found = matched_pairs(features, value, y, np.ones(n), each=8)
    assert (twin, other) in found
    for against, usual in found:
        assert y[against] == y[usual]
        assert value[against] != y[against] and value[usual] == y[usual]
    rows = [row for pair in found for row in pair]
    assert len(rows) == len(set(rows))


def test_what_may_be_misread_is_in_no_pair() -> None:
    """Of the pictures against their class some are as sure as their value usually is: those."""
    draw = np.random.default_rng(2)
    y = np.repeat([0, 1], 50)
    value = y.copy()
    value[45:50], value[50:55] = 1, 0
    sure = np.full(100, 1.0)
    sure[47:50] = sure[52:55] = 0.2
    features = draw.normal(size=(100, 4)).astype(np.float32)
    found = matched_pairs(features, value, y, sure, each=5)
    assert {against for against, _ in found} == {45, 46, 50, 51}
    sure[45:50] = 0.1
    sure[46] = 0.15
    found = matched_pairs(features, value, y, sure, each=5)
    assert {against for against, _ in found} == {46, 50, 51}, "the surest one where none is sure"


def test_values_do_not_differ_in_what_is_left() -> None:
    draw = np.random.default_rng(1)
    y, value = np.repeat([0, 1], 30), np.tile([0, 1, 1, 0, 1, 0], 10)
    features = draw.normal(size=(60, 8)).astype(np.float32)
    features[:, 2] += 3 * value
    left = without_direction(features, value, y)
    for label in (0, 1):
        left[y == label] -= left[y == label].mean(0)
    gap = left[value == 1].mean(0) - left[value == 0].mean(0)
    assert np.abs(gap).max() < 1e-4


def test_no_pair_without_images_against() -> None:
    y = np.array([0, 0, 1, 1])
    assert matched_pairs(np.eye(4, dtype=np.float32), y.copy(), y, np.ones(4), each=3) == []


def test_a_frame_changes_only_the_window_s_edge() -> None:
    pixels = np.zeros((10, 12, 3), np.uint8)
    framed = frame(pixels, (2, 3), (4, 5))
    changed = np.argwhere(framed.any(-1))
    assert len(changed) == 2 * 5 + 2 * 2
    assert changed.min(0).tolist() == [2, 3] and changed.max(0).tolist() == [5, 7]
    assert not pixels.any()
