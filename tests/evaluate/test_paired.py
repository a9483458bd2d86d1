"""The gain in the worst group, and how sure it is."""

import numpy as np
import pytest

from d2cp.evaluate.paired import paired_gain

GROUPS = np.repeat([0, 1], 100)


def right(*shares: float) -> np.ndarray:
    return np.concatenate([(np.arange(100) < round(100 * s)).astype(float) for s in shares])


def test_the_worst_group_of_either_is_compared() -> None:
    found = paired_gain(right(0.9, 0.5), right(0.6, 0.8), GROUPS)
    assert found.worst_group == pytest.approx(0.1)
    assert found.mean == pytest.approx(0.0)
    assert found.low < 0.1 < found.high
    assert "+10.0 points" in str(found)


def test_pairs_tell_more_than_two_shares() -> None:
    """Ten images more right and none less is surely a gain; twenty more and ten less is not so."""
    before = right(0.6, 0.9)
    clean = paired_gain(before, right(0.7, 0.9), GROUPS)
    mixed = before.copy()
    mixed[:20], mixed[60:90] = 0.0, 1.0
    noisy = paired_gain(before, mixed, GROUPS)
    assert clean.worst_group == noisy.worst_group == pytest.approx(0.1)
    assert clean.surely > 0.99 > noisy.surely
    assert clean.high - clean.low < noisy.high - noisy.low


def test_nothing_changed_is_no_sure_gain_and_a_few_images_are_never_sure() -> None:
    same = right(0.7, 0.9)
    assert 0.3 < paired_gain(same, same, GROUPS).surely < 0.7
    few = np.repeat([0, 1], [2, 100])
    before = np.r_[[0.0, 0.0], np.ones(100)]
    found = paired_gain(before, np.ones(102), few)
    assert found.worst_group == pytest.approx(1.0) and found.low < 0.7
