"""Which classifier is recommended, by mined groups of images that neither was trained on."""

import numpy as np
import pytest

from d2cp.evaluate import choice
from d2cp.evaluate.choice import LITTLE, choose, lean, standard_error
from d2cp.evaluate.paired import Gain

Y = np.repeat([0, 0, 1, 1], 100)
VALUE = np.tile(np.repeat([0, 1], 100), 2)
AGAINST = (VALUE != Y).astype(np.float64)


def right(*shares: float) -> np.ndarray:
    """Answers with these accuracies in the groups (0,0), (0,1), (1,0), (1,1)."""
    answers = [np.arange(100) < round(100 * share) for share in shares]
    return np.concatenate(answers).astype(np.float64)


@pytest.mark.parametrize(
    ("erm", "d2cp", "shipped"),
    [
        ((0.95, 0.5, 0.5, 0.95), (0.85, 0.8, 0.8, 0.85), "d2cp"),
        ((0.9, 0.77, 0.8, 0.9), (0.8, 0.64, 0.8, 0.8), "erm"),  # harm
        ((0.9, 0.70, 0.8, 0.9), (0.8, 0.72, 0.73, 0.85), "erm"),  # two points, which may be chance
        ((0.9, 0.70, 0.8, 0.9), (0.92, 0.78, 0.84, 0.9), "d2cp"),
        ((0.9, 0.7, 0.8, 0.9), (0.9, 0.7, 0.8, 0.9), "erm"),  # the same: a tie
    ],
)
def test_only_what_is_surely_better_is_recommended(erm, d2cp, shipped) -> None:
    made = choose(right(*erm), right(*d2cp), Y, AGAINST)
    assert made.shipped == shipped
    assert made.erm.worst_group == pytest.approx(min(erm))
    assert made.d2cp.group_mean == pytest.approx(np.mean(d2cp))
    for share in (min(erm), min(d2cp)):
        assert f"{100 * share:.1f}%" in made.reason
    assert made.to_dict()["model"] == shipped
    assert made.to_dict()["gain"]["worst_group"] == pytest.approx(min(d2cp) - min(erm))
    assert ("does harm" in made.reason) == (min(d2cp) < min(erm) - 0.1)


def test_lean_is_the_loss_against_the_usual_value_of_each_class() -> None:
    found = lean(right(0.9, 0.5, 0.6, 0.8), Y, AGAINST)
    assert found is not None
    assert (found.usual, found.unusual) == (pytest.approx(0.85), pytest.approx(0.55))
    assert not found.little
    only = lean(right(0.9, 0.5, 0.6, 0.8), Y, np.zeros(400))
    assert only is None  # no image goes against the finding


def test_a_backbone_that_does_not_read_the_cue_is_said_to() -> None:
    same = right(0.9, 0.88, 0.9, 0.9)
    made = choose(same, same, Y, AGAINST)
    assert made.lean is not None and made.lean.gap < LITTLE
    assert "hardly reads this cue" in made.sentences[1]
    assert "89.0% of the images that go against" in made.sentences[1]
    leaning = right(0.9, 0.6, 0.6, 0.9)
    assert len(choose(leaning, leaning, Y, AGAINST).sentences) == 1


def test_a_gain_where_plain_training_does_not_use_the_cue_is_no_repair() -> None:
    plain, balanced = right(0.95, 0.95, 0.65, 0.63), right(0.9, 0.9, 0.8, 0.8)
    made = choose(plain, balanced, Y, AGAINST)
    assert made.gain.surely > 0.9 and made.lean is not None and made.lean.little
    assert made.shipped == "erm" and "hardly leans on the finding" in made.reason


def test_standard_error_is_the_binomial_one_and_never_zero() -> None:
    wide = standard_error(np.array([0.3]), np.array([10_000]))
    assert wide[0] == pytest.approx(np.sqrt(0.3 * 0.7 / 10_000), rel=1e-2)
    assert standard_error(np.array([1.0]), np.array([5]))[0] > 0.1


def sure(share: float) -> Gain:
    return Gain(worst_group=0.1, low=0.05, high=0.2, mean=0.02, surely=share)


@pytest.mark.parametrize(
    ("real", "exchanged", "shipped"),
    [
        (0.80, 0.99, "d2cp"),  # few images say likely, many exchanged ones very sure
        (0.80, 0.94, "erm"),
        (0.70, 0.99, "erm"),  # images as they are have to be for it
        (0.91, 0.10, "d2cp"),  # and where they are sure nothing else is asked
    ],
)
def test_exchanged_images_decide_only_what_others_leave_open(monkeypatch, real, exchanged, shipped):
    monkeypatch.setattr(choice, "paired_gain", lambda *given: sure(real))
    leaning = right(0.9, 0.6, 0.6, 0.9)
    made = choose(leaning, leaning, Y, AGAINST, exchanged=sure(exchanged))
    assert made.shipped == shipped
    assert "with the cue exchanged in them, too: +10.0 points" in made.reason
    assert made.to_dict()["exchanged"]["surely"] == exchanged
    plain = right(0.9, 0.9, 0.9, 0.9)  # leans on nothing: there is nothing to repair
    assert choose(plain, plain, Y, AGAINST, exchanged=sure(exchanged)).shipped == "erm"
