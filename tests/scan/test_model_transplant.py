"""A model that reads the cue goes over with it, one that does not stays."""

import numpy as np
import pytest
import torch

from d2cp.evaluate.reliance import transplant_sentence
from d2cp.scan.bank import Bank
from d2cp.scan.finding import Finding, Reader, Scan
from d2cp.scan.lenses.patches import learn_dictionary
from d2cp.scan.model_transplant import case_of, model_transplants, scaled
from few_templates import few_templates

SIDE = 24


class Store:
    """Half of the pictures are bluish."""

    size = SIDE

    def __init__(self, value: np.ndarray, side: int = SIDE) -> None:
        draw = np.random.default_rng(0)
        self.pixels = draw.integers(60, 120, (len(value), side, side, 3)).astype(np.uint8)
        self.pixels[value == 1, :, :, 2] += 90

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        return self.pixels[rows]


@pytest.fixture
def scanned():
    value = np.arange(80) % 2
    images = torch.rand(4, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(0))
    bank = Bank((learn_dictionary(images, 4, 2, 0, patches=50),), few_templates())
    scores = (2.0 * value - 1)[:, None].astype(np.float32)
    empty = {"colour": np.zeros(0, np.float32)}
    moved = {"flips": 1.0, "control": 0.0, "gap": 1.0, "towards": 1, "pairs": 64}
    finding = Finding(
        **{"rank": 1, "name": "overall colour: bluer", "lens": "colour", "lenses": ("colour",)},
        **{"outcome": "found", "strength": 0.9, "p_value": 0.005, "agreement": 0.9},
        **{"value_names": ("no", "yes"), "threshold": 0.0, "stability": 1.0, "reasons": ()},
        evidence={"transplant": moved},
        value=value,
        score=scores[:, 0].astype(np.float64),
        scores=scores,
        reader=Reader(weight={}, intercept=np.zeros(1, np.float32), centre=empty, scale=empty),
    )
    return Scan(findings=(finding,), bank=bank, size=SIDE), finding, Store(value)


def test_flips_of_a_model_that_leans_and_of_one_that_does_not(scanned):
    found, finding, store = scanned

    def answer(images):
        blue = (images[:, 2].mean((1, 2)) > images[:, 0].mean((1, 2)) + 0.1).long()
        return {"erm": blue.numpy(), "d2cp": torch.zeros_like(blue).numpy()}

    rows = np.arange(80)
    before = answer(torch.from_numpy(store[rows]).permute(0, 3, 1, 2) / 255)
    moved = model_transplants(found, finding, store, rows, before, answer, 0)
    assert moved["towards"] == 1 and moved["pairs"] == 40
    assert moved["erm"]["flips"] == 1 and moved["erm"]["control"] == 0
    assert moved["d2cp"]["gap"] == 0 and moved["d2cp"]["interval"][0] < 0
    assert moved["erm"]["interval"][0] > 0.5
    said = transplant_sentence(moved, ("land", "water"))
    assert "100% of 40 images go over to “water” (control 0%)" in said and "after, 0%" in said


def test_a_model_that_says_so_anyway_has_no_say(scanned):
    found, finding, store = scanned
    rows, before = np.arange(80), {"d2cp": np.ones(80, int)}

    def answer(images):
        return {"d2cp": np.ones(len(images), int)}

    moved = model_transplants(found, finding, store, rows, before, answer, 0)
    assert moved["d2cp"]["gap"] is None and moved["d2cp"]["images"] == 0
    assert transplant_sentence(moved, ("land", "water")) == ""


def test_what_is_not_in_the_pixels_or_was_not_tested_is_left_out(scanned):
    from dataclasses import replace

    _, finding, _ = scanned
    rows = np.arange(80)
    assert case_of(replace(finding, lens="file"), rows, 0) is None
    untested = {"transplant": {**finding.evidence["transplant"], "pairs": 0}}
    assert case_of(replace(finding, evidence=untested), rows, 0) is None
    assert case_of(finding, rows[:6], 0) is None


def test_windows_keep_their_place_in_a_larger_picture():
    small, large = torch.zeros(1, 3, 24, 24), torch.zeros(1, 3, 48, 48)
    assert scaled([(3, 4)], small, large) == [(6, 8)]
    height, width = 12, 21
    assert scaled([(23, 23)], small, large) == [(48 - height, 48 - width)]
