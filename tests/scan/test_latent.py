"""The hidden value behind a score: shares by class are found, posteriors beat the labels."""

import numpy as np
import pytest

from d2cp.scan.latent import posterior


@pytest.mark.parametrize("classes", [2, 4])
def test_posteriors_know_the_value_better_than_the_class_does(classes):
    draw = np.random.default_rng(0)
    value = draw.integers(classes, size=4000)
    other = (value + draw.integers(1, classes, size=4000)) % classes
    y = np.where(draw.random(4000) < 0.8, value, other)
    scores = np.eye(classes)[value] + draw.normal(0, 0.35, (4000, classes))
    scores = (scores[:, 1:] if classes == 2 else scores).astype(np.float32)
    member = posterior(scores, y, classes)
    assert member.shape == (4000, classes) and np.allclose(member.sum(1), 1)
    assert np.mean(member.argmax(1) == value) > np.mean(y == value) + 0.08
    shares = [member[y == c, c].mean() for c in range(classes)]
    assert shares == pytest.approx([0.8] * classes, abs=0.06)


def test_a_score_that_is_the_same_for_all_says_what_the_shares_say():
    y = np.arange(20) % 2
    member = posterior(np.zeros((20, 1), np.float32), y, 2)
    assert np.isfinite(member).all() and (member[y == 1, 1] > 0.5).all()
