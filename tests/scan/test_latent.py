"""The hidden value behind a score: shares by class are found, posteriors beat the labels."""

import numpy as np
import pytest

from d2cp.scan.hidden import hidden_value
from d2cp.scan.latent import fit_mixture, posterior


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


def drawn(share, classes, apart=3.0, n=3000):
    """Scores of a value that is on `share` of its class; with a share of 1 the class says all."""
    draw = np.random.default_rng(1)
    y = np.arange(n) % classes
    other = (y + draw.integers(1, classes, size=n)) % classes
    value = np.where(draw.random(n) < share, y, other)
    scores = apart * np.eye(classes)[value] + draw.normal(size=(n, classes))
    return (scores[:, 1:] if classes == 2 else scores).astype(np.float32), y


@pytest.mark.parametrize("classes", [2, 3])
def test_a_hidden_value_explains_more_than_the_class_where_there_is_one(classes):
    assert hidden_value(*drawn(0.8, classes), classes) > 0.05
    assert hidden_value(*drawn(1.0, classes, apart=1.0), classes) < 0.005


@pytest.mark.parametrize("classes", [2, 3])
def test_a_hidden_value_is_a_gain_in_likelihood(classes):
    """Written out, image by image."""
    scores, y = drawn(0.8, classes, n=60)
    mixture = fit_mixture(scores, y, classes)
    means = [scores[y == c].astype(float).mean(0) for c in range(classes)]
    squares = [((s - means[c]) ** 2).mean() for s, c in zip(scores.astype(float), y, strict=True)]

    def density(s, centre, variance):
        each = [
            np.exp(-((a - b) ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)
            for a, b in zip(s, centre, strict=True)
        ]
        return np.prod(each)

    gains = []
    for s, c in zip(scores.astype(float), y, strict=True):
        behind = sum(
            mixture.shares[c, v] * density(s, mixture.centres[v], mixture.variance)
            for v in range(classes)
        )
        gains.append(np.log(behind) - np.log(density(s, means[c], np.mean(squares))))
    assert hidden_value(scores, y, classes) == pytest.approx(np.mean(gains), rel=1e-6)
