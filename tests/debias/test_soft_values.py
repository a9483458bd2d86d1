"""How surely an image has a value, and what the sampler makes of it."""

import numpy as np
import pytest

from d2cp.debias.sampler import sample_weights
from d2cp.debias.soft_values import soft_weights, value_shares


def planted(n: int = 4000, usual: float = 0.95, apart: float = 2.4):
    """Scores of two values `apart` deviations; class 1 has value 1 on a share `usual`."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    true = np.where(rng.random(n) < usual, y, 1 - y)
    score = apart * true + rng.normal(size=n)
    return score, (score > apart / 2).astype(np.int64), y, true, np.arange(n)


def test_shares_are_as_right_as_they_say_and_the_values_are_not() -> None:
    score, a, y, true, rows = planted()
    found = value_shares(score, a, y, rows, rows[:0], 2)
    assert found is not None and np.allclose(found.sum(axis=1), 1)
    against = a != y
    assert np.mean(true[against] == a[against]) < 0.45, "most are called so by mistake"
    for label in (0, 1):
        of_class = np.flatnonzero(y == label)
        rising = found[of_class[np.argsort(score[of_class])], 1]
        assert np.all(np.diff(rising) >= 0), "a higher score never makes value 1 less sure"
    surely = found[np.arange(len(y)), a][against]
    assert surely.mean() == pytest.approx(np.mean(true[against] == a[against]), abs=0.1)


def test_true_groups_come_closer_to_equal_shares() -> None:
    score, a, y, true, rows = planted()
    found = value_shares(score, a, y, rows, rows[:0], 2)
    groups = 2 * y + true

    def spread(weights: np.ndarray) -> float:
        share = np.bincount(groups, weights) / weights.sum()
        return float(np.abs(share - 0.25).max())

    assert spread(soft_weights(y, found, 1.0)) < 0.6 * spread(sample_weights(2 * y + a, 1.0))


@pytest.mark.parametrize("alpha", [0.0, 1.0, 1.6])
def test_sure_values_give_the_formula_of_groups(alpha: float) -> None:
    y = np.repeat([0, 0, 1, 1], [40, 10, 8, 42])
    a = np.repeat([0, 1, 0, 1], [40, 10, 8, 42])
    weights = soft_weights(y, np.eye(2)[a], alpha)
    assert np.allclose(weights, sample_weights(2 * y + a, alpha))


def test_a_group_that_is_not_there_gets_no_weight_out_of_nothing() -> None:
    y = np.zeros(100, np.int64)
    shares = np.tile([1 - 1e-9, 1e-9], (100, 1))
    shares[0] = [0.99, 0.01]
    weights = soft_weights(y, shares, 1.0)
    assert weights[0] / weights.sum() < 0.02


def test_values_that_are_no_cut_of_the_score_are_taken_as_they_are() -> None:
    score, a, y, _, rows = planted(200)
    by_hand = a.copy()
    by_hand[score.argmax()] = 0
    assert value_shares(score, by_hand, y, rows, rows[:0], 2) is None
    assert value_shares(score, a + (score > 3), y, rows, rows[:0], 2) is None, "three values"
    assert value_shares(score, np.zeros_like(a), y, rows, rows[:0], 2) is None


def test_validation_has_shares_of_its_own() -> None:
    """There half of each class have either value: the same score says more of an unusual image."""
    score, a, y, _, _ = planted(usual=0.95)
    even, a_even, y_even, true_even, _ = planted(usual=0.5)
    n = len(y)
    both = (np.r_[score, even], np.r_[a, a_even], np.r_[y, y_even])
    found = value_shares(*both, np.arange(n), np.arange(n, 2 * n), 2)
    assert found is not None
    unusual = found[np.arange(n, 2 * n), 1 - y_even]
    assert unusual.mean() == pytest.approx(np.mean(true_even != y_even), abs=0.07)
    assert found[:n][np.arange(n), 1 - y].mean() < 0.1
