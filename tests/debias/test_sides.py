"""Accuracy with and against a finding, for sure and for unsure values."""

import numpy as np
import pytest

from d2cp.debias.sides import classes_of, side_weights

Y = np.repeat([0, 1], [60, 40])


def test_sure_values_give_the_means_of_groups() -> None:
    against = (np.arange(100) % 3 == 0).astype(float)
    right = np.random.default_rng(0).random(100)
    found = side_weights(Y, against) @ right
    groups = [right[(c == Y) & (against == s)].mean() for c in (0, 1) for s in (0, 1)]
    assert np.allclose(found, groups)


def test_unsure_images_count_for_their_part() -> None:
    q, right = np.array([0.0, 0.5, 1.0]), np.array([1.0, 0.0, 1.0])
    assert side_weights(np.zeros(3, np.int64), q) @ right == pytest.approx([2 / 3, 2 / 3])


def test_a_class_on_one_side_is_one_group() -> None:
    against = np.where(Y == 0, 0.0, np.arange(100) % 2)
    assert [one.sides for one in classes_of(Y, against)] == [1, 2]
    parts = side_weights(Y, against)
    assert parts.shape == (3, 100) and np.allclose(parts.sum(axis=1), 1)
