"""The verdict follows its evidence."""

import numpy as np
import pytest
import torch

from d2cp.scan.beyond import told_beyond
from d2cp.scan.changes import (
    CHANGES,
    give_border,
    give_colour,
    give_middle,
    give_sharpness,
    give_surroundings,
)
from d2cp.scan.evidence import certainty, of_the_class, sure_and_wrong, unlike_the_class
from d2cp.scan.judge import FOUND, judge
from d2cp.scan.lenses.tint import give_tint
from d2cp.scan.measure import how_many
from d2cp.scan.names import describe, describe_entry, value_names, with_place
from d2cp.scan.transplant import paste, place_of, window_of
from d2cp.scan.values import agreement, beyond_chance, cut, score_of, values_of


def evidence(alone=0.8, hidden=0.0, flips=0.7, control=0.2, beyond=1.0):
    moved = {"flips": flips, "control": control, "gap": flips - control, "pairs": 64}
    counts = {"agreement": 0.5 + alone / 2, "chance": 0.5, "against": 9, "images": 90}
    told = {"alone": alone, "beyond": min(alone, beyond), "hidden_value": hidden}
    return {**told, "transplant": moved, **counts}


def test_strength_rises_with_agreement_and_with_what_a_transplant_carries():
    rising = [judge("colour", evidence(a), 0.005, 0.01).strength for a in (0.3, 0.6, 0.9)]
    assert rising == sorted(rising) and rising[0] < FOUND < rising[1]
    carried = judge("colour", evidence(), 0.005, 0.01)
    stuck = judge("colour", evidence(flips=0.2), 0.005, 0.01)
    assert carried.outcome == "found" and stuck.outcome == "weak"
    assert stuck.strength == pytest.approx(carried.strength / 2)
    assert any("class itself" in reason for reason in stuck.reasons)


def test_strength_counts_what_a_finding_tells_beyond_those_before_it():
    first = judge("colour", evidence(), 0.005, 0.01)
    again = judge("colour", evidence(beyond=0.1), 0.005, 0.01)
    assert (first.outcome, again.outcome) == ("found", "weak")
    assert any("balanced away" in reason for reason in again.reasons)


def test_a_class_that_is_easy_to_tell_is_no_shortcut():
    easy = judge("colour", evidence(alone=0.98, flips=0.3), 0.005, 0.01)
    assert easy.strength > FOUND and easy.outcome == "weak"
    # Kinds of an object make heaps of scores: what a window or an edge shows has to be carried.
    parts = {"repeated detail": "window", "local pattern": "window", "border": "edge"}
    for lens, part in parts.items():
        heaps = judge(lens, evidence(alone=0.75, hidden=0.1, flips=0.3), 0.005, 0.01)
        assert heaps.outcome == "weak" and any(part in reason for reason in heaps.reasons)
        carried = judge(lens, evidence(alone=0.75, flips=0.6, control=0.1), 0.005, 0.01)
        assert carried.outcome == "found"
    assert (
        judge("colour", evidence(alone=0.75, hidden=0.1, flips=0.3), 0.005, 0.01).outcome == "found"
    )


@pytest.mark.parametrize("classes", [2, 5])
def test_another_reading_of_a_cue_tells_nothing_beyond_it_a_second_cue_does(classes):
    draw = np.random.default_rng(0)
    y = draw.integers(classes, size=4000)

    def cue():
        other = (y + draw.integers(1, classes, size=4000)) % classes
        return np.where(draw.random(4000) < 0.9, y, other)

    one, two = cue(), cue()
    score = (np.eye(classes)[one] + draw.normal(0, 0.05, (4000, classes))).astype(np.float32)
    score = score[:, 1:] if classes == 2 else score
    alone = told_beyond(two, y, classes, [])
    assert alone == pytest.approx(beyond_chance(agreement(two, y), classes))
    assert told_beyond(two, y, classes, [score]) == pytest.approx(alone, abs=0.1)
    assert told_beyond(one, y, classes, [score]) < 0.15


def test_a_value_that_the_class_does_not_decide_is_found_unless_it_lies_in_the_middle():
    stuck = evidence(flips=0.3, control=0.3)
    assert judge("colour", stuck, 0.005, 0.01).outcome == "weak"
    assert judge("colour", {**stuck, "hidden_value": 0.06}, 0.005, 0.01).outcome == "found"
    inside = judge("colour", evidence(hidden=0.06, flips=0.1, control=0.9), 0.005, 0.01)
    assert inside.outcome == "weak" and any("middle" in reason for reason in inside.reasons)


def test_what_is_in_every_part_of_a_picture_needs_a_value_behind_it():
    assert judge("layout", evidence(), 0.005, 0.01).outcome == "weak"
    assert judge("layout", evidence(hidden=0.06), 0.005, 0.01).outcome == "found"


def test_what_chance_tells_as_well_is_none():
    verdict = judge("colour", evidence(), 0.2, 0.01)
    assert verdict.outcome == "none" and verdict.strength <= 0.1


def test_sure_answers_are_contradicted_as_often_by_a_cue_and_never_by_the_class():
    draw = np.random.default_rng(0)
    value, sure = draw.integers(2, size=4000), draw.random(4000)
    cue = np.where(draw.random(4000) < 0.1, 1 - value, value)
    hard = np.where(sure < 0.1, 1 - value, value)
    assert sure_and_wrong(value, sure, cue)[0] == pytest.approx(1, abs=0.2)
    assert sure_and_wrong(value, sure, hard)[0] == 0
    assert certainty(np.array([[3.0, 1.0, 2.5]], np.float32), None).tolist() == [0.5]


@pytest.mark.parametrize("apart", [0.3, 0.7, 1.2])
def test_errors_about_the_class_itself_are_contradicted_as_two_normal_scores_are(apart):
    draw = np.random.default_rng(0)
    y = draw.integers(2, size=400_000)
    score = draw.normal(size=len(y)) + apart * (2 * y - 1)
    value = (score > 0).astype(np.int64)
    ratio, error = sure_and_wrong(value, np.abs(score), y)
    wrong = float(np.mean(value != y))
    assert of_the_class(wrong) == pytest.approx(ratio, abs=max(0.01, 3 * error))
    assert abs(unlike_the_class(ratio, wrong)) < 0.05
    assert unlike_the_class(1.0, wrong) == 1
    rising = [of_the_class(share) for share in (0.01, 0.1, 0.2, 0.3, 0.4, 0.49)]
    assert rising == sorted(rising) and rising[0] >= 0 and rising[-1] < 1


def test_values_of_two_classes_and_of_three():
    y = np.array([0, 0, 1, 1])
    score = np.array([[-2.0], [-1.0], [1.0], [2.0]], np.float32)
    threshold = cut(score, y)
    assert threshold is not None and values_of(score, threshold).tolist() == y.tolist()
    three = np.eye(3, dtype=np.float32)
    assert cut(three, np.arange(3)) is None and values_of(three, None).tolist() == [0, 1, 2]
    assert score_of(three, np.array([0, 1, 0])).tolist() == [1, 1, 0]
    assert agreement(np.array([0, 1, 1, 1]), y) == 0.75
    assert beyond_chance(0.75, 2) == 0.5 and beyond_chance(0.1, 10) == 0


def test_a_name_says_what_the_score_follows_within_the_classes():
    draw = np.random.default_rng(0)
    y = np.arange(400) % 2
    blue = draw.normal(size=400)
    words = {"blue": blue, "bright": 5.0 * y + draw.normal(size=400), "red": draw.normal(size=400)}
    name, two = describe("colour", (blue + 3 * y).astype(np.float32), y, words)
    assert name == "overall colour: bluer" and two == ("less blue", "bluer")
    assert describe("column site", blue.astype(np.float32), y, {})[0] == "column site"


def test_a_file_s_or_column_s_finding_says_which_entry_it_is():
    """Also where the entry is the class itself: there is nothing within the classes to go by."""
    draw = np.random.default_rng(0)
    y = np.arange(400) % 2
    score = (y + 0.1 * draw.normal(size=400)).astype(np.float32)
    noise = draw.normal(size=400).astype(np.float32)
    wide = {"width": noise, "camera A 1": (1 - y).astype(np.float32)}
    name, two = describe_entry("file", score, wide)
    assert name == "file: not camera A 1" and two == ("camera A 1", "not camera A 1")
    assert describe_entry("file", -score, wide)[0] == "file: camera A 1"
    name, two = describe_entry("file", score, {"width": 3.0 * y + noise})
    assert name == "file: wider images" and two == ("narrower images", "wider images")
    name, _ = describe_entry("column site", score, {"site B": y.astype(np.float32)})
    assert name == "column site: B"
    assert describe_entry("column age", score, {"age": 50 - 9 * y})[0] == "column age: low age"
    assert describe_entry("file", score, {"width": noise}) == ("file property", ())


@pytest.mark.parametrize("lens", sorted(CHANGES))
def test_an_image_that_gives_to_itself_stays_as_it_is(lens):
    images = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(CHANGES[lens](images, images), images, atol=1e-3)


def test_each_transplant_gives_what_it_is_for():
    draw = torch.Generator().manual_seed(1)
    ours = torch.rand(2, 3, 32, 32, generator=draw)
    theirs = 0.3 * torch.rand(2, 3, 32, 32, generator=draw)
    assert torch.allclose(give_colour(ours, theirs).mean((2, 3)), theirs.mean((2, 3)), atol=1e-4)
    blue = ours * torch.tensor([0.9, 1.0, 1.1])[:, None, None]
    assert torch.allclose(give_tint(ours, blue), blue, rtol=0.02)
    edge = give_border(ours, theirs)
    assert torch.equal(edge[..., :4, :], theirs[..., :4, :])
    assert torch.equal(edge[..., 4:-4, 4:-4], ours[..., 4:-4, 4:-4])
    around, inside = give_surroundings(ours, theirs), give_middle(ours, theirs)
    assert torch.equal(around + inside, ours + theirs)  # each pixel goes with one of the two
    assert torch.equal(inside[..., 5:-5, 5:-5], theirs[..., 5:-5, 5:-5])
    assert int((inside != ours).any(1)[0].sum()) == 22 * 22  # half of 32 × 32
    soft = torch.nn.functional.avg_pool2d(ours, 5, 1, 2)
    assert give_sharpness(ours, soft).diff(dim=3).abs().mean() < ours.diff(dim=3).abs().mean()
    height, width = window_of(32)
    pasted = paste(ours, theirs, [(3, 5), (0, 0)])
    assert torch.equal(
        pasted[0, :, 3 : 3 + height, 5 : 5 + width], theirs[0, :, 3 : 3 + height, 5 : 5 + width]
    )
    assert int((pasted[1] != ours[1]).any(0).sum()) == height * width


def test_a_place_is_said_where_most_windows_are():
    height, width = window_of(100)
    bottom, right = 100 - height, 100 - width
    assert place_of([(bottom, x) for x in range(0, right, 4)], 100) == "mostly lower edge"
    assert place_of([(0, right)] * 7 + [(40, 20)] * 3, 100) == "mostly upper right corner"
    assert place_of([(bottom // 2, right // 2)] * 4, 100) == "mostly in the middle"
    spread = [(y, x) for y in range(0, bottom, 5) for x in range(0, right, 5)]
    assert place_of(spread, 100) == "in changing places" and place_of([], 100) == ""
    assert with_place("local pattern", "local pattern", "mostly lower edge") == (
        "local pattern, mostly lower edge"
    )
    around = with_place("texture", "texture: smoother", "")
    assert around == "texture of the surroundings: smoother"
    assert with_place("colour", "overall colour: bluer", "") == "overall colour: bluer"


def test_values_are_called_by_what_is_known_of_them() -> None:
    birds = ("gull", "wren")
    assert value_names("texture", ("rougher", "smoother"), birds, 1) == ("rougher", "smoother")
    with_it = ("with the local pattern", "without the local pattern")
    assert value_names("local pattern", (), birds, 0) == with_it
    assert value_names("layout", (), birds, None) == ("layout of gull", "layout of wren")
    many = value_names("colour", ("bluer", "redder"), ("a", "b", "c"), 1)
    assert many == ("overall colour of a", "overall colour of b", "overall colour of c")


def test_what_hardly_tells_the_class_is_not_named_unless_nothing_is_stronger() -> None:
    assert how_many([0.74, 0.05, 0.04]) == 2
    assert how_many([0.74, 0.5, 0.1]) == 3
    assert how_many([0.01, 0.0]) == 1
