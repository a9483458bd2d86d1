"""The sampler against the formula, and its dependence on (seed, epoch) alone."""

import numpy as np
import pytest

from d2cp.config.debias import DebiasConfig
from d2cp.debias.sampler import natural_order, sample_weights, weighted_order
from d2cp.errors import ConfigError

GROUPS = np.repeat(np.array([0, 1, 3]), [900, 90, 10])  # group 2 is empty in the whole set


@pytest.mark.parametrize("alpha", [0.0, 1.0, 1.8])
def test_weights_are_the_formula(alpha: float) -> None:
    expected = [(1000 / (g == GROUPS).sum()) ** alpha for g in GROUPS]
    assert np.allclose(sample_weights(GROUPS, alpha), expected)


@pytest.mark.parametrize(
    ("alpha", "shares"), [(0.0, [0.9, 0.09, 0, 0.01]), (1.0, [1 / 3, 1 / 3, 0, 1 / 3])]
)
def test_shares_of_groups(alpha: float, shares: list[float]) -> None:
    drawn = weighted_order(GROUPS, alpha, 60_000, seed=0, epoch=0)
    found = np.bincount(GROUPS[drawn], minlength=4) / len(drawn)
    assert np.allclose(found, shares, atol=0.01)


def test_the_largest_exponent_gives_weights_and_a_larger_one_is_refused() -> None:
    """One image of a million alone in its group: the weights are still finite."""
    alone = np.r_[np.zeros(999_999, np.int64), 1]
    assert np.isfinite(sample_weights(alone, 20.0)).all()
    assert weighted_order(GROUPS, 20.0, 50, seed=0, epoch=0).min() >= 990
    with pytest.raises(ConfigError, match=r"alpha = 1e\+30"):
        DebiasConfig(alpha=1e30)


def test_is_a_function_of_seed_and_epoch() -> None:
    first = weighted_order(GROUPS, 1.2, 500, seed=3, epoch=4)
    assert np.array_equal(first, weighted_order(GROUPS, 1.2, 500, seed=3, epoch=4))
    assert not np.array_equal(first, weighted_order(GROUPS, 1.2, 500, seed=3, epoch=5))
    assert not np.array_equal(first, weighted_order(GROUPS, 1.2, 500, seed=4, epoch=4))


@pytest.mark.parametrize("draws", [30, 100, 250])
def test_natural_order_shows_every_image_equally_often(draws: int) -> None:
    epochs = 1000 // draws
    seen = np.concatenate([natural_order(100, draws, seed=1, epoch=e) for e in range(epochs)])
    counts = np.bincount(seen, minlength=100)
    assert len(seen) == draws * epochs
    assert counts.max() - counts.min() <= 1
