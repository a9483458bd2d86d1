"""Words of a finding: the score against a literal version, balanced draws, the bound of chance."""

from __future__ import annotations

import numpy as np
import pytest

from d2cp.core.rng import numpy_generator
from d2cp.scan.word_scores import (
    balanced_rows,
    chance,
    dealt_anew,
    noise,
    within_classes,
    word_scores,
)


def drawn(classes: int, values: int, n: int = 60, words: int = 7):
    draw = np.random.default_rng(classes * 10 + values)
    y, value = draw.integers(0, classes, n), draw.integers(0, values, n)
    return draw.normal(size=(n, words)) + y[:, None], y, value


def literal(cosines, y, value, values: int) -> list[list[float]]:
    scores = []
    for v in range(values):
        row = []
        for w in range(cosines.shape[1]):
            differences = []
            for c in sorted(set(y.tolist())):
                own = [float(cosines[i, w]) for i in range(len(y)) if y[i] == c]
                mean = sum(own) / len(own)
                spread = (sum((x - mean) ** 2 for x in own) / len(own)) ** 0.5
                mine = [float(cosines[i, w]) for i in range(len(y)) if y[i] == c and value[i] == v]
                rest = [float(cosines[i, w]) for i in range(len(y)) if y[i] == c and value[i] != v]
                if mine and rest:
                    gap = sum(mine) / len(mine) - sum(rest) / len(rest)
                    differences.append(gap / spread if spread else 0.0)
            row.append(sum(differences) / len(differences) if differences else 0.0)
        scores.append(row)
    return scores


@pytest.mark.parametrize("classes, values", [(1, 2), (2, 2), (3, 3), (4, 2), (2, 5)])
def test_scores_are_those_written_out(classes: int, values: int) -> None:
    cosines, y, value = drawn(classes, values)
    value[y == classes - 1] = 0 if classes > 1 else value[y == 0]  # a class with one value only
    cosines[:, 0] = y  # a word that no image of a class differs in
    found = word_scores(within_classes(cosines, y), y, value, values)
    np.testing.assert_allclose(found, literal(cosines, y, value, values), atol=1e-12)
    assert not found[:, 0].any()


def test_the_two_sides_of_a_finding_mirror_each_other() -> None:
    cosines, y, value = drawn(2, 2)
    low, high = word_scores(within_classes(cosines, y), y, value, 2)
    np.testing.assert_allclose(low, -high, atol=1e-12)


def test_a_word_of_the_class_is_none_of_the_finding() -> None:
    """The value goes with the class on 90% of images: what tells the class scores nothing."""
    draw = np.random.default_rng(0)
    y = np.arange(400) % 2
    value = np.where(draw.random(400) < 0.9, y, 1 - y)
    cosines = np.stack([5.0 * y, 5.0 * value], axis=1) + draw.normal(size=(400, 2))
    _, (of_class, of_value) = word_scores(within_classes(cosines, y), y, value, 2)
    assert abs(of_class) < 0.5 and of_value > 2


def test_as_many_of_every_class_and_value_are_drawn() -> None:
    y = np.repeat([0, 0, 1, 1, 2, 3, 3], [500, 20, 30, 400, 90, 50, 1])
    value = np.repeat([0, 1, 0, 1, 1, 0, 1], [500, 20, 30, 400, 90, 50, 1])
    rows = balanced_rows(y, value, 100, numpy_generator(3, "test"))
    counts = {(int(c), int(v)): 0 for c, v in zip(y, value, strict=True)}
    for row in rows:
        counts[int(y[row]), int(value[row])] += 1
    # Class 2 has one value, class 3 too few images of its second.
    assert counts == {
        (0, 0): 26,
        (0, 1): 20,
        (1, 0): 26,
        (1, 1): 26,
        (2, 1): 0,
        (3, 0): 0,
        (3, 1): 0,
    }
    assert len(set(rows.tolist())) == len(rows)
    np.testing.assert_array_equal(rows, balanced_rows(y, value, 100, numpy_generator(3, "test")))
    other = balanced_rows(y, value, 100, numpy_generator(4, "test"))
    assert other.tolist() != rows.tolist()


def test_the_number_of_images_is_bounded_with_many_classes() -> None:
    draw = np.random.default_rng(1)
    y, value = draw.integers(0, 50, 20_000), draw.integers(0, 50, 20_000)
    rows = balanced_rows(y, value, 240, numpy_generator(0, "test"))
    assert len(rows) == 240
    assert 2 <= len(np.unique(y[rows])) <= 3  # whole classes, so that values can be compared
    nothing = balanced_rows(y, y, 240, numpy_generator(0, "test"))
    assert nothing.dtype == np.int64 and len(nothing) == 0


def test_values_are_dealt_within_the_class() -> None:
    _, y, value = drawn(3, 3)
    dealt = dealt_anew(y, value, numpy_generator(0, "test"))
    assert dealt.tolist() != value.tolist()
    for c in range(3):
        assert sorted(dealt[y == c]) == sorted(value[y == c])


def test_noise_is_what_deals_scatter_by() -> None:
    cosines, y, value = drawn(2, 2, n=400, words=2000)
    value[y == 1] = np.arange((y == 1).sum()) < 3  # few against many
    value = np.where(np.arange(400) == 0, 2, value)  # and one image alone
    standard = within_classes(cosines, y)
    dealt = dealt_anew(y, value, numpy_generator(0, "test"))
    scattered = word_scores(standard, y, dealt, 4).std(axis=1)
    np.testing.assert_allclose(noise(y, value, 4), scattered, rtol=0.1)
    assert noise(y, value, 4)[3] == 0


def test_a_rare_value_does_not_hide_a_frequent_one() -> None:
    draw = np.random.default_rng(0)
    y, value = np.zeros(100, dtype=np.int64), np.arange(100) % 2
    value[:2] = 2
    standard = within_classes(draw.normal(size=(100, 50)), y)
    bound = chance(standard, y, value, 4, 99, numpy_generator(0, "test"))
    assert bound[0] < 1 < 2 < bound[2] and bound[3] == 0


def test_words_without_a_part_in_it_pass_chance_as_rarely_as_they_should() -> None:
    """300 findings of noise at 19 deals: one in twenty has a word above the bound."""
    passed = 0
    for trial in range(300):
        draw = np.random.default_rng(trial)
        y, value = np.arange(40) % 2, draw.choice(3, 40, p=(0.5, 0.4, 0.1))
        standard = within_classes(draw.normal(size=(40, 30)), y)
        bound = chance(standard, y, value, 3, 19, numpy_generator(trial, "test"))
        passed += bool((word_scores(standard, y, value, 3) > bound[:, None]).any())
    assert 4 <= passed <= 28  # 15 expected
