"""The gain in the worst group, and how sure it is."""

import numpy as np
import pytest

from d2cp.evaluate.paired import paired_gain

Y, AGAINST = np.zeros(200, np.int64), np.repeat([0.0, 1.0], 100)


def right(*shares: float) -> np.ndarray:
    return np.concatenate([(np.arange(100) < round(100 * s)).astype(float) for s in shares])


def test_the_worst_group_of_either_is_compared() -> None:
    found = paired_gain(right(0.9, 0.5), right(0.6, 0.8), Y, AGAINST)
    assert found.worst_group == pytest.approx(0.1)
    assert found.mean == pytest.approx(0.0)
    assert found.low < 0.1 < found.high
    assert "+10.0 points" in str(found)


def test_pairs_tell_more_than_two_shares() -> None:
    """Ten images more right and none less is surely a gain; twenty more and ten less is not so."""
    before = right(0.6, 0.9)
    clean = paired_gain(before, right(0.7, 0.9), Y, AGAINST)
    mixed = before.copy()
    mixed[:20], mixed[60:90] = 0.0, 1.0
    noisy = paired_gain(before, mixed, Y, AGAINST)
    assert clean.worst_group == noisy.worst_group == pytest.approx(0.1)
    assert clean.surely > 0.99 > noisy.surely
    assert clean.high - clean.low < noisy.high - noisy.low


def test_nothing_changed_is_no_sure_gain_and_a_few_images_are_never_sure() -> None:
    same = right(0.7, 0.9)
    assert 0.3 < paired_gain(same, same, Y, AGAINST).surely < 0.7
    before = np.r_[[0.0, 0.0], np.ones(100)]
    found = paired_gain(
        before, np.ones(102), np.zeros(102, np.int64), np.r_[[1.0, 1.0], np.zeros(100)]
    )
    assert found.worst_group == pytest.approx(1.0) and found.low < 0.7


def test_images_count_as_surely_as_they_are_on_a_side() -> None:
    """Nine of ten images called unusual are not, and the chances say so: the gain is found."""
    rng = np.random.default_rng(0)
    q = np.repeat([0.0, 0.02, 0.9], [1000, 900, 100])
    unusual = rng.random(2000) < q
    before = np.where(unusual, rng.random(2000) < 0.4, rng.random(2000) < 0.9).astype(float)
    after = np.where(unusual, rng.random(2000) < 0.7, rng.random(2000) < 0.8).astype(float)
    y = np.zeros(2000, np.int64)
    soft = paired_gain(before, after, y, q)
    called = paired_gain(before, after, y, (q > 0).astype(float))
    assert soft.worst_group > 0.1 > called.worst_group and soft.surely > 0.99
