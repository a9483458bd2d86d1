from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import softmax

from d2cp.mine.biased_classifier import (
    fit_basis,
    fit_epochs,
    fit_features,
    log_loss,
    sample_weights,
)
from mine_synthetic import shortcut_set


def literal_loss(theta, x, y, weights, l2):
    total = 0.0
    for i in range(len(x)):
        z = theta[:, :-1] @ x[i] + theta[:, -1]
        total -= weights[i] * (z[y[i]] - np.log(np.exp(z).sum()))
    return total / weights.sum() + 0.5 * l2 * (theta[:, :-1] ** 2).sum()


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.integers(2, 4), st.sampled_from([0.3, 0.01]), st.booleans())
def test_fit_is_the_minimum_of_the_loss_written_out(seed, classes, l2, balanced):
    generator = np.random.default_rng(seed)
    x, y = generator.normal(size=(40, 3)), generator.integers(classes, size=40)
    weights = sample_weights(y, classes, balanced)
    found = fit_features(x, y, classes, l2=l2, weights=weights)
    best = literal_loss(found, x, y, weights, l2)
    other = minimize(
        lambda t: literal_loss(t.reshape(classes, -1), x, y, weights, l2),
        np.zeros(classes * 4),
        method="L-BFGS-B",
    )
    assert best <= other.fun + 1e-6


def test_basis_keeps_the_minimum():
    tokens, y, _ = shortcut_set(200)
    x = tokens - tokens.mean(axis=0)
    basis = fit_basis(x)
    features = basis.encode(x)
    weights = sample_weights(y, 2, True)
    theta = fit_features(features, y, 2, l2=0.01, weights=weights)
    weight = basis.decode(theta[:, :-1])
    flat = x.reshape(len(x), -1) / basis.scale
    plain = fit_features(flat, y, 2, l2=0.01, weights=weights)
    direct = flat @ plain[:, :-1].T + plain[:, -1]
    reduced = x.reshape(len(x), -1) @ weight.reshape(2, -1).T + theta[:, -1]
    np.testing.assert_allclose(reduced, direct, atol=1e-3)


def test_basis_of_constant_tokens_is_empty():
    basis = fit_basis(np.zeros((5, 3, 2)))
    assert basis.encode(np.zeros((5, 3, 2))).shape == (5, 0)
    assert basis.decode(np.zeros((2, 0))).tolist() == np.zeros((2, 3, 2)).tolist()


def test_balanced_weights_give_every_class_the_same_total():
    y = np.array([0, 0, 0, 2])
    weights = sample_weights(y, 3, True)
    assert weights[y == 0].sum() == pytest.approx(weights[y == 2].sum())
    assert weights.mean() == pytest.approx(1)


def test_few_epochs_are_weaker_than_many_and_repeatable():
    tokens, y, _ = shortcut_set(300)
    x = tokens.reshape(len(y), -1)
    losses = []
    for epochs in (1, 5, 50):
        arguments = dict(l2=0.0, weights=np.ones(len(y)), learning_rate=0.1, batch_size=32, seed=3)
        theta = fit_epochs(x, y, 2, epochs=epochs, **arguments)
        assert np.array_equal(theta, fit_epochs(x, y, 2, epochs=epochs, **arguments))
        losses.append(log_loss(softmax(x @ theta[:, :-1].T + theta[:, -1], axis=1), y).mean())
    assert losses[0] > losses[1] > losses[2]
