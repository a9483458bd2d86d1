from __future__ import annotations

import numpy as np

from d2cp.config.mine import MineConfig, default_top_m
from d2cp.mine.biased_classifier import feature_probabilities, fit_basis
from d2cp.mine.crossfit import (
    assign_folds,
    choose_l2,
    denoised_labels,
    fit,
    flip_labels,
    held_out_loss,
    held_out_probabilities,
    held_out_signal,
)
from d2cp.mine.search import choose_top_m, selection_rows
from mine_synthetic import shortcut_set


def features_of(tokens):
    x = tokens - tokens.mean(axis=0)
    return x, fit_basis(x).encode(x)


def test_folds_spread_every_class_evenly():
    y = np.repeat([0, 1, 2], [50, 23, 4])
    fold = assign_folds(y, 5, seed=1)
    for c in range(3):
        counts = np.bincount(fold[y == c], minlength=5)
        assert counts.max() - counts.min() <= 1


def test_held_out_probabilities_never_see_the_row():
    tokens, y, _ = shortcut_set(120)
    _, x = features_of(tokens)
    config, fold = MineConfig(), assign_folds(y, 4, 0)
    found = held_out_probabilities(x, y, 2, fold, config, 0.01, 0)
    for j in range(4):
        theta = fit(x[fold != j], y[fold != j], 2, config, 0.01, 0)
        np.testing.assert_array_equal(found[fold == j], feature_probabilities(x[fold == j], theta))
    changed = y.copy()
    changed[5] = 1 - changed[5]
    other = held_out_probabilities(x, changed, 2, fold, config, 0.01, 0)
    np.testing.assert_array_equal(found[5], other[5])


def test_chosen_l2_is_the_strongest_that_keeps_the_signal():
    tokens, y, _ = shortcut_set(200)
    _, x = features_of(tokens)
    config = MineConfig(l2_grid=(0.003, 10.0, 1e-6, 0.1))
    fold = assign_folds(y, 5, 0)
    signals = {
        l2: held_out_signal(held_out_loss(x, y, 2, fold, config, l2, 0), y, 2, True)
        for l2 in config.l2_grid
    }
    enough = [l2 for l2, signal in signals.items() if signal >= 0.95 * max(signals.values())]
    assert choose_l2(x, y, 2, fold, config, 0) == max(enough) < 10.0
    noise = np.random.default_rng(0).permutation(y)
    hopeless = MineConfig(l2_grid=(1e-5, 1e-6))
    assert choose_l2(x, noise, 2, fold, hopeless, 0) == 1e-5


def test_flips_need_confidence_and_can_revert():
    y = np.array([0, 0, 1])
    probability = np.array([[0.2, 0.8], [0.3, 0.7], [0.1, 0.9]])
    assert flip_labels(probability, y).tolist() == [1, 0, 1]
    assert flip_labels(np.array([[0.6, 0.2, 0.2]]), np.array([1])).tolist() == [1]
    assert flip_labels(np.array([[0.8, 0.1, 0.1]]), np.array([1])).tolist() == [0]


def test_flipping_turns_labels_into_the_attribute():
    tokens, y, a = shortcut_set(600, agreement=0.9)
    _, x = features_of(tokens)
    config, fold = MineConfig(flip_rounds=2), assign_folds(y, 5, 0)
    labels = denoised_labels(x, y, 2, fold, config, 0.001, 0)
    assert np.mean(labels == a) > 0.97 > np.mean(y == a)
    off = MineConfig(flip_rounds=0)
    assert np.array_equal(denoised_labels(x, y, 2, fold, off, 0.001, 0), y)


def test_fewest_concepts_that_carry_the_signal():
    tokens, y, _ = shortcut_set(400, agreement=0.95)
    x, _ = features_of(tokens)
    scores = np.array([[1.0, 0, 9, 2, 3, 4], [1.0, 0, 9, 2, 3, 4]])
    config = MineConfig()
    assert choose_top_m(x, y, scores, 2, config, 0.001, 0) == 1
    last = scores.max() - scores
    assert choose_top_m(x, y, last, 2, config, 0.001, 0) == 6
    noise = np.random.default_rng(0).permutation(y)
    assert choose_top_m(x, noise, scores, 2, config, 1e-6, 0) == default_top_m(6) == 2
    assert default_top_m(20) == 3 and default_top_m(1) == 1


def test_signal_of_a_useless_prediction_is_nought():
    y = np.repeat([0, 1], [30, 10])
    shares = np.log([0.75, 0.25])
    assert abs(held_out_signal(-shares[y], y, 2, balanced=False)) < 1e-12


def test_selection_rows_keep_rare_classes():
    y = np.repeat([0, 1], [5000, 5])
    rows = selection_rows(y, 100, seed=0)
    assert (y[rows] == 1).sum() == 5 and len(rows) <= 125
    assert np.array_equal(selection_rows(y[:50], 100, 0), np.arange(50))
