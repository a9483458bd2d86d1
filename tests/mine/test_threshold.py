from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.mixture import GaussianMixture

from d2cp.mine import mixture, threshold
from d2cp.mine.mixture import (
    choose_clusters,
    cluster_counts,
    fit_two_gaussians,
    squared_distances,
)
from d2cp.mine.rule import zero_sum_basis

numbers = st.lists(st.integers(-20, 20).map(float), min_size=2, max_size=40)


@settings(deadline=None)
@given(numbers)
def test_otsu_against_every_cut(values):
    score = np.array(values)

    def between(cut):
        low, high = score[score <= cut], score[score > cut]
        if not len(low) or not len(high):
            return 0.0
        return len(low) * len(high) * (low.mean() - high.mean()) ** 2

    best = max(between(cut) for cut in score)
    assert between(threshold.otsu(score)) == pytest.approx(best)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-6, 6), st.booleans()), min_size=2, max_size=30))
@example([(0, False), (0, True), (0, True), (-1, False), (-2, True), (-3, False)])  # a tie
def test_youden_is_within_an_error_of_every_cut(rows):
    score, flag = np.array([float(s) for s, _ in rows]), np.array([f for _, f in rows])
    cut = threshold.youden(score, flag)
    if flag.all() or not flag.any():
        assert np.isfinite(cut)
        return

    def j(t):
        return np.mean(score[flag] > t) - np.mean(score[~flag] > t)

    inside = np.unique(score)[:-1]
    if not len(inside):
        return
    largest = max(j(c) for c in inside)
    best = next(c for c in inside if j(c) >= largest - 1e-9)  # the lowest of those that tie
    up, down = np.mean(score[flag] > best), np.mean(score[~flag] > best)
    error = np.sqrt(up * (1 - up) / flag.sum() + down * (1 - down) / (~flag).sum())
    assert j(cut) >= j(best) - error - 1e-9


def test_youden_for_noisy_labels_is_the_cut_for_the_attribute():
    generator = np.random.default_rng(0)
    a = generator.random(20_000) < 0.3
    score = np.where(a, generator.normal(2, 0.5, 20_000), generator.normal(0, 1, 20_000))
    y = np.where(generator.random(20_000) < 0.15, ~a, a)
    grid = np.linspace(-1, 3, 400)
    best = max(grid, key=lambda t: np.mean(score[a] > t) - np.mean(score[~a] > t))
    assert threshold.youden(score, y) == pytest.approx(best, abs=0.1)


def test_youden_cuts_in_the_middle_of_a_gap():
    score = np.array([0.0, 1.0, 2.0, 8.0, 9.0])
    assert threshold.youden(score, score > 5) == 5.0


def two_groups(n=2000, gap=6.0, share=0.3, seed=0):
    generator = np.random.default_rng(seed)
    upper = generator.random(n) < share
    return generator.normal(size=n) + gap * upper, upper


def test_mixture_cuts_between_two_groups_and_counts_them():
    score, upper = two_groups()
    fitted = fit_two_gaussians(score)
    assert np.mean((score > fitted.boundary) == upper) > 0.995
    assert fitted.weights[1] == pytest.approx(0.3, abs=0.03)
    assert fitted.means[1] - fitted.means[0] == pytest.approx(6, abs=0.2)
    assert fitted.bic_gain > 0 and fitted.ashman_d == pytest.approx(6, abs=0.4)
    assert threshold.gmm(score) == fitted.boundary


@pytest.mark.parametrize("gap", [3.0, 4.0, 6.0])
def test_mixture_is_the_one_of_scikit_learn_from_the_same_halves(gap):
    score, _ = two_groups(gap=gap)
    fitted = fit_two_gaussians(score)
    halves = [score[score <= mixture._two_means(score)], score[score > mixture._two_means(score)]]
    general = GaussianMixture(
        2,
        covariance_type="spherical",
        tol=1e-9,
        max_iter=1000,
        init_params="random",
        weights_init=[len(half) / len(score) for half in halves],
        means_init=[[half.mean()] for half in halves],
        precisions_init=[1 / half.var() for half in halves],
    ).fit(score[:, None])
    np.testing.assert_allclose(fitted.means, general.means_[:, 0], atol=0.02)
    np.testing.assert_allclose(fitted.weights, general.weights_, atol=0.005)
    single = GaussianMixture(1, covariance_type="spherical").fit(score[:, None])
    gain = single.bic(score[:, None]) - general.bic(score[:, None])
    assert fitted.bic_gain == pytest.approx(gain, abs=0.1)


def test_one_normal_group_is_not_two():
    score = np.random.default_rng(1).normal(size=3000)
    assert fit_two_gaussians(score).bic_gain < 0


@settings(deadline=None)
@given(numbers, st.floats(-5, 5), st.floats(0.1, 10))
@example([-1.0, -2.0, -2.0, -2.0, -3.0], 0.0, 1.1486177929603647)
def test_mixture_moves_with_its_scores(values, shift, scale):
    score = np.array(values)
    moved = fit_two_gaussians(score * scale + shift)
    assert moved.boundary == pytest.approx(
        fit_two_gaussians(score).boundary * scale + shift, abs=1e-3 * scale
    )


@pytest.mark.parametrize("score", [np.full(10, 3.0), np.array([1.0]), np.array([])])
def test_scores_without_spread_have_one_group(score):
    fitted = fit_two_gaussians(score)
    assert fitted.bic_gain == -np.inf and fitted.ashman_d == 0
    assert np.isfinite(threshold.otsu(score))


def test_disagreement_counts_the_images_between_two_cuts():
    assert threshold.disagreement(np.array([0.0, 1.0, 2.0, 3.0]), 0.5, 2.5) == 0.5
    assert threshold.midpoint(-1.0, 3.0) == 1.0


@pytest.mark.parametrize("groups", [2, 3, 5])
def test_bic_picks_the_number_of_clusters(groups):
    generator = np.random.default_rng(groups)
    centres = 6 * np.eye(5)[:groups]
    label = np.arange(600) % groups
    x = centres[label] + generator.normal(size=(600, 5))
    found = choose_clusters(x, centres, (2, 3, 4, 5), seed=0)
    assert len(found.centres) == groups
    assert np.mean(found.assign(x) == label) > 0.99, "value c belongs to prototype c"


def test_zero_sum_basis_is_orthonormal_and_orthogonal_to_ones():
    basis = zero_sum_basis(6)
    np.testing.assert_allclose(basis.T @ basis, np.eye(5), atol=1e-12)
    np.testing.assert_allclose(basis.sum(axis=0), 0, atol=1e-12)


def test_squared_distances_against_differences():
    draw = np.random.default_rng(0)
    x, centres = draw.normal(size=(40, 7)), draw.normal(size=(5, 7))
    literal = ((x[:, None] - centres[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(squared_distances(x, centres), literal, atol=1e-12)
    assert (squared_distances(x, x[:3]) >= 0).all()


def test_every_number_of_values_is_tried_while_they_are_few():
    assert cluster_counts(2) == (2,)
    assert cluster_counts(10) == tuple(range(2, 11))
    many = cluster_counts(200)
    assert many[:11] == tuple(range(2, 13)) and many[-1] == 200 and len(many) < 30


def test_with_many_classes_few_mixtures_are_fitted(monkeypatch):
    """Three values under 60 classes: the counts that are left are not tried one by one."""
    draw = np.random.default_rng(0)
    centres = 9 * np.eye(3, 8)
    x = centres[np.arange(600) % 3] + 0.1 * draw.normal(size=(600, 8))
    fitted = []
    real = mixture.fit_clusters
    monkeypatch.setattr(
        mixture, "fit_clusters", lambda x, start: fitted.append(len(start)) or real(x, start)
    )
    start = np.repeat(centres, 20, axis=0) + 0.01 * draw.normal(size=(60, 8))
    found = choose_clusters(x, start, cluster_counts(60), seed=0)
    assert len(found.centres) == 3
    assert fitted == [*range(2, 13), 60, 60]
