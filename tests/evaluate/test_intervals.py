"""Intervals against their definitions written out, and what they hold."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from d2cp.evaluate.intervals import mean_interval, share_interval, wilson, worst_interval

Z = 1.959963984540054
GROUPS = st.lists(
    st.tuples(st.integers(1, 400), st.floats(0, 1), st.integers(1, 50)), min_size=1, max_size=6
)


def _arrays(groups):
    n = np.array([n for n, _, _ in groups])
    hits = np.array([round(n * share) for n, share, _ in groups])
    return hits / n, n, np.array([float(w) for _, _, w in groups])


def _literal(accuracy: float, n: int, z: float) -> tuple[float, float]:
    """The two p at which a normal test of p just does not reject, by bisection."""

    def edge(inside: float, outside: float) -> float:
        for _ in range(200):
            middle = (inside + outside) / 2
            kept = abs(accuracy - middle) <= z * math.sqrt(middle * (1 - middle) / n)
            inside, outside = (middle, outside) if kept else (inside, middle)
        return inside

    return edge(accuracy, 0.0), edge(accuracy, 1.0)


@given(st.integers(1, 500), st.floats(0, 1))
def test_wilson_is_what_a_normal_test_does_not_reject(n, share):
    accuracy = round(n * share) / n
    assert share_interval(accuracy, n) == pytest.approx(_literal(accuracy, n, Z), abs=1e-6)


def test_no_hit_and_no_miss_have_a_width():
    low, high = share_interval(0.0, 24)
    assert low == 0.0 and high == pytest.approx(0.138, abs=0.001)
    assert worst_interval(np.array([0.0, 1.0]), np.array([24, 500])).high > 0.13
    assert mean_interval(np.ones(3), np.full(3, 20), np.ones(3)).low < 0.95


@given(GROUPS)
def test_the_worst_group_against_bounds_taken_one_by_one(groups):
    accuracy, n, _ = _arrays(groups)
    low = min(_literal(a, k, Z)[0] for a, k in zip(accuracy, n, strict=True))
    tail = 1 - (1 - 0.025) ** (1 / len(n))
    high = min(
        float(wilson(np.array([a]), np.array([k]), tail)[1][0])
        for a, k in zip(accuracy, n, strict=True)
    )
    found = worst_interval(accuracy, n)
    assert found == pytest.approx((low, high), abs=1e-6)
    assert found.low <= accuracy.min() <= found.high and found.low < found.high


@given(GROUPS)
def test_the_mean_against_distances_added_in_quadrature(groups):
    accuracy, n, weight = _arrays(groups)
    value = sum(w * a for a, w in zip(accuracy, weight, strict=True)) / sum(weight)
    below = above = 0.0
    for a, k, w in zip(accuracy, n, weight, strict=True):
        low, high = _literal(a, k, Z)
        below += (w / sum(weight) * (a - low)) ** 2
        above += (w / sum(weight) * (high - a)) ** 2
    expected = (max(0, value - math.sqrt(below)), min(1, value + math.sqrt(above)))
    found = mean_interval(accuracy, n, weight)
    assert found == pytest.approx(expected, abs=1e-6)
    assert found.low - 1e-12 <= value <= found.high + 1e-12 and found.low < found.high


@pytest.mark.parametrize("truth", [(0.05, 0.9), (0.5, 0.5), (0.8, 0.85), (0.97, 0.97)])
def test_about_nineteen_in_twenty_intervals_hold_the_truth(truth):
    """Coverage, summed exactly over all outcomes of two groups of 24 and 40 images."""
    sizes = (24, 40)
    of_worst = of_mean = 0.0
    for hits in itertools.product(*(range(n + 1) for n in sizes)):
        chance = math.prod(
            math.comb(n, k) * p**k * (1 - p) ** (n - k)
            for k, n, p in zip(hits, sizes, truth, strict=True)
        )
        accuracy, n = np.array(hits) / np.array(sizes), np.array(sizes)
        low, high = worst_interval(accuracy, n)
        of_worst += chance * (low <= min(truth) <= high)
        low, high = mean_interval(accuracy, n, n.astype(float))
        of_mean += chance * (low <= np.dot(truth, n) / sum(sizes) <= high)
    assert of_worst > 0.92 and of_mean > 0.92  # near 1 a score interval dips below 95%
