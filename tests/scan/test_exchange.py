"""A cue exchanged: the donor's is there afterwards, the rest is the image's own."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import d2cp.scan.exchange as exchange
from d2cp.scan.exchange import ENOUGH, Exchange, exchanged, pairs, why_not
from d2cp.scan.finding import Finding, Reader, Scan
from d2cp.scan.transplant import window_of

SIDE, N = 24, 60
VALUE = np.arange(N) % 3 % 2  # 0, 1, 0, 0, 1, 0, …: two of three have value 0


class Store:
    """Every picture of its own grey, value 1 bluish; in value 1 a white window at the top left."""

    size = SIDE

    def __init__(self, n: int = N) -> None:
        draw = np.random.default_rng(0)
        self.pixels = draw.integers(40, 120, (n, SIDE, SIDE, 3)).astype(np.uint8)
        self.pixels[VALUE[:n] == 1, :, :, 2] += 90

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        return self.pixels[rows]


def finding(
    lens: str = "colour", values: int = 2, value: np.ndarray = VALUE, rank: int = 1
) -> Finding:
    scores = (2.0 * value - 1 + np.linspace(-0.1, 0.1, N))[:, None].astype(np.float32)
    return Finding(
        **{"rank": rank, "name": "overall colour: bluer", "lens": lens, "lenses": (lens,)},
        **{"outcome": "found", "strength": 0.9, "p_value": 0.005, "agreement": 0.9},
        **{"value_names": ("no", "yes", "perhaps")[:values], "stability": 1.0, "reasons": ()},
        threshold=0.0,
        evidence={"transplant": {"towards": 1, "pairs": 64, "flips": 0.9}},
        value=value,
        score=scores[:, 0].astype(np.float64),
        scores=scores,
        reader=Reader(weight={}, intercept=np.zeros(1, np.float32), centre={}, scale={}),
    )


def scan_of(one: Finding) -> Scan:
    return Scan(findings=(one,), bank=None, size=SIDE)  # type: ignore[arg-type]


ROWS, DONORS = np.arange(N), np.arange(40)
CELLS = np.array([[0], [1]])


def pairs_of(one: Finding, donors: np.ndarray = DONORS, seed: int = 0) -> Exchange | None:
    return pairs([one], CELLS, VALUE, ROWS, donors, seed)


def test_donors_are_sure_images_of_another_value_and_friends_of_the_own():
    one = finding()
    which = pairs_of(one)
    assert which is not None
    donors, friends = which.donors[:, 0], which.friends[:, 0]
    assert (VALUE[donors] == which.given).all() and (which.given == 1 - VALUE).all()
    assert (which.after[:, 0] == which.given).all() and (which.before[:, 0] == VALUE).all()
    assert (VALUE[friends] == VALUE).all() and (friends != ROWS).all()
    assert set(donors) | set(friends) <= set(DONORS)
    for value in (0, 1):
        own = DONORS[VALUE[DONORS] == value]
        distance = np.abs(one.scores[:, 0])
        least = np.sort(distance[own])[len(own) - len(own) // 2]
        assert distance[donors[which.given == value]].min() >= least
    again, other = pairs_of(one), pairs_of(one, seed=1)
    assert again is not None and other is not None
    assert np.array_equal(which.donors, again.donors)
    assert not np.array_equal(which.donors, other.donors)


def test_without_two_values_there_is_nothing_to_exchange():
    assert pairs_of(finding(), DONORS[VALUE[DONORS] == 0]) is None
    assert pairs([finding()], CELLS, VALUE, ROWS, DONORS, 0, [True]) is None


def test_a_colour_is_the_donors_and_the_control_keeps_its_own():
    one = finding()
    which = pairs_of(one)
    assert which is not None
    made, control = exchanged(scan_of(one), [one], which.part(slice(0, 9)), Store(), 0)

    def blue(images: torch.Tensor) -> np.ndarray:
        return (images[:, 2].mean((1, 2)) - images[:, 0].mean((1, 2)) > 0.17).numpy()

    assert np.array_equal(blue(made), which.given[:9] == 1)
    assert np.array_equal(blue(control), VALUE[:9] == 1)
    assert float(made.min()) >= 0 and float(made.max()) <= 1


def test_a_window_is_put_in_or_laid_over_and_the_controls_leave_it(monkeypatch):
    looked_at = []

    def telling(bank, reader, images, side):
        looked_at.append(images)
        assert side == 1
        return [(2, 3)] * len(images)

    monkeypatch.setattr(exchange, "telling_windows", telling)
    one, store = finding("local pattern"), Store()
    which = pairs_of(one)
    assert which is not None
    made, control = exchanged(scan_of(one), [one], which.part(slice(0, 12)), store, 0)
    height, width = window_of(SIDE)
    inside = torch.zeros(SIDE, SIDE, dtype=torch.bool)
    inside[2 : 2 + height, 3 : 3 + width] = True
    for i in range(12):
        own, donor = (
            torch.from_numpy(store.pixels[r[i]]).permute(2, 0, 1) / 255
            for r in (which.recipients, which.donors[:, 0])
        )
        assert torch.allclose(made[i][:, inside], donor[:, inside])
        assert torch.allclose(made[i][:, ~inside], own[:, ~inside])
        changed = (control[i] != own).any(0)
        assert changed.any() and changed.sum() <= height * width
        if VALUE[i] == 1:  # its own cue is still to be seen, most of it
            assert (changed & inside).sum() < 0.5 * inside.sum()
    # the window is looked for where the cue is: in the picture that has value 1
    (images,) = looked_at
    carriers = np.where(VALUE[:12] == 1, which.recipients[:12], which.donors[:12, 0])
    expected = torch.from_numpy(store.pixels[carriers]).permute(0, 3, 1, 2) / 255
    assert torch.allclose(images, expected, atol=1e-5)


OTHER = np.arange(N) // 3 % 2
BOTH = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
CELL = 2 * VALUE + OTHER


def test_of_several_findings_an_image_goes_to_any_other_cell():
    two = [finding(), finding("local pattern", value=OTHER, rank=2)]
    which = pairs(two, BOTH, CELL, ROWS, DONORS, 0)
    assert which is not None
    assert (which.given != CELL).all() and set(which.given) == {0, 1, 2, 3}
    assert np.array_equal(which.before, np.stack([VALUE, OTHER], axis=1))
    assert np.array_equal(which.after, BOTH[which.given])
    own = np.stack([VALUE, OTHER], axis=1)
    for k in (0, 1):
        donors, friends = which.donors[:, k], which.friends[:, k]
        assert (own[donors, k] == which.after[:, k]).all()
        assert (own[friends, k] == which.before[:, k]).all()
        # a donor shows what the image shows of the other finding, where there are enough of them
        sure = [d for d in DONORS if abs(two[k].scores[d, 0]) >= np.median(abs(two[k].scores))]
        for row, donor in zip(ROWS, donors, strict=True):
            alike = own[sure, 1 - k] == own[row, 1 - k]
            if (alike & (own[sure, k] == which.after[row, k])).sum() >= 2 * ENOUGH:
                assert own[donor, 1 - k] == own[row, 1 - k]
    held = pairs(two, BOTH, CELL, ROWS, DONORS, 0, [False, True])
    assert held is not None
    assert np.array_equal(held.after[:, 1], OTHER) and (held.after[:, 0] == 1 - VALUE).all()


def test_one_finding_after_the_other_is_exchanged(monkeypatch):
    def telling(bank, reader, images, side):
        return [(2, 3)] * len(images)

    monkeypatch.setattr(exchange, "telling_windows", telling)
    two, store = [finding(), finding("local pattern", value=OTHER, rank=2)], Store()
    which = pairs(two, BOTH, CELL, ROWS, DONORS, 0)
    assert which is not None
    made, control = exchanged(scan_of(two[0]), two, which, store, 0)
    own = torch.from_numpy(store.pixels[ROWS]).permute(0, 3, 1, 2) / 255
    window = torch.zeros(SIDE, SIDE, dtype=torch.bool)
    window[2 : 2 + window_of(SIDE)[0], 3 : 3 + window_of(SIDE)[1]] = True
    tinted = which.before[:, 0] != which.after[:, 0]
    pasted = which.before[:, 1] != which.after[:, 1]
    assert (tinted & pasted).any() and (~tinted & pasted).any() and (tinted & ~pasted).any()
    for i in np.flatnonzero(pasted & ~tinted):
        donor = torch.from_numpy(store.pixels[which.donors[i, 1]]).permute(2, 0, 1) / 255
        assert torch.allclose(made[i][:, window], donor[:, window])
        assert torch.allclose(made[i][:, ~window], own[i][:, ~window])
    for i in np.flatnonzero(tinted & ~pasted):
        theirs = torch.from_numpy(store.pixels[which.donors[i, 0]]).permute(2, 0, 1) / 255
        assert made[i].mean((1, 2)) == pytest.approx(theirs.mean((1, 2)), abs=0.02)
    for i in np.flatnonzero(tinted & pasted):
        # the window was put in first, and the whole then took the donor's colour
        theirs = torch.from_numpy(store.pixels[which.donors[i, 0]]).permute(2, 0, 1) / 255
        assert made[i].mean((1, 2)) == pytest.approx(theirs.mean((1, 2)), abs=0.02)
    assert (control != own).any((1, 2, 3)).all()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, ""),
        ({"lens": "file"}, "not in the picture"),
        ({"evidence": {}}, "not tested"),
        ({"evidence": {"transplant": {"pairs": 64, "flips": 0.4}}}, "to 40% of images"),
        ({"lens": "local pattern", "value_names": ("a", "b", "c")}, "two values only"),
        ({"lens": "tint", "value_names": ("a", "b", "c")}, ""),
    ],
)
def test_what_cannot_be_exchanged_says_why(changes, reason):
    found = why_not(replace(finding(), **changes))
    assert reason in found and bool(reason) == bool(found)
