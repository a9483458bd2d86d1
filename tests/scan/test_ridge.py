"""Cross-fitted ridge against the same thing written out, row by row and fold by fold."""

import numpy as np
import pytest

from d2cp.scan.ridge import L2_GRID, assign_folds, cross_fit, prepare


def literal(x, fold, target):
    """One labelling: centre, solve for every L2, keep the least GCV error, score the fold."""
    held = np.zeros(len(x))
    for k in np.unique(fold):
        a, b = x[fold != k].astype(float), target[fold != k].astype(float)
        centre, n = a.mean(0), len(a)
        a, b = a - centre, b - b.mean()
        gram = a.T @ a / n
        unit = np.linalg.eigvalsh(gram).mean()
        errors, betas = [], []
        for l2 in L2_GRID:
            inverse = np.linalg.inv(gram + l2 * unit * np.eye(x.shape[1]))
            beta = inverse @ a.T @ b / n
            freedom = 1 + np.trace(inverse @ gram)
            errors.append(np.mean((b - a @ beta) ** 2) / (1 - freedom / n) ** 2)
            betas.append(beta)
        raw = x[fold == k] @ betas[int(np.argmin(errors))]
        held[fold == k] = (raw - raw.mean()) / raw.std()
    return held


def test_cross_fit_is_the_literal_one_for_every_labelling():
    draw = np.random.default_rng(0)
    x = draw.normal(size=(60, 5)).astype(np.float32)
    targets = (x[:, :1] + draw.normal(size=(60, 3))).astype(np.float32)
    fold = assign_folds(60, 4, seed=1)
    fit = cross_fit(prepare(x, fold), targets)
    for t in range(3):
        assert np.allclose(fit.held_out[:, t], literal(x, fold, targets[:, t]), atol=1e-3)
    for k in range(4):
        again = x[fold == k] @ fit.weight[k] + fit.intercept[k]
        assert np.allclose(again, fit.held_out[fold == k], atol=1e-4)


def test_no_row_is_scored_by_a_model_that_saw_its_label():
    draw = np.random.default_rng(1)
    x = draw.normal(size=(50, 4)).astype(np.float32)
    target = draw.normal(size=(50, 1)).astype(np.float32)
    fold = assign_folds(50, 5, seed=0)
    folds = prepare(x, fold)
    before = cross_fit(folds, target).held_out
    changed = target.copy()
    changed[7] += 100
    after = cross_fit(folds, changed).held_out
    mine = fold == fold[7]
    assert np.allclose(before[mine], after[mine])
    assert not np.allclose(before[~mine], after[~mine])


def test_folds_are_even_and_do_not_look_at_labels():
    fold = assign_folds(103, 5, seed=3)
    assert np.bincount(fold).tolist() in ([21, 21, 21, 20, 20],)
    assert not np.array_equal(fold, assign_folds(103, 5, seed=4))


def test_a_trusting_fit_is_ridge_on_features_scaled_by_their_own_moments():
    draw = np.random.default_rng(2)
    x = draw.normal(size=(80, 6)).astype(np.float32)
    target = (x[:, :1] + 0.5 * draw.normal(size=(80, 1))).astype(np.float32)
    fold = assign_folds(80, 4, seed=1)
    fit = cross_fit(prepare(x, fold), target, 1.0)
    for k in range(4):
        a, b = x[fold != k].astype(float), target[fold != k, 0].astype(float)
        moment = np.abs((a - a.mean(0)).T @ (b - b.mean()))
        scale = moment / moment.max()
        alone = literal((x * scale).astype(np.float32), fold, target[:, 0])
        assert np.allclose(fit.held_out[fold == k, 0], alone[fold == k], atol=1e-3)
        again = x[fold == k] @ fit.weight[k] + fit.intercept[k]
        assert np.allclose(again, fit.held_out[fold == k], atol=1e-4)


def test_a_cue_of_one_feature_among_many_is_told_better_by_a_trusting_fit():
    draw = np.random.default_rng(3)
    cue = draw.integers(2, size=600)
    x = draw.normal(size=(600, 200)).astype(np.float32)
    x[:, 7] += 1.5 * cue
    y = np.where(draw.random(600) < 0.8, cue, 1 - cue)
    folds = prepare(x, assign_folds(600, 5, seed=0))
    target = y[:, None].astype(np.float32)
    plain, trusting = (cross_fit(folds, target, t).held_out[:, 0] for t in (0.0, 2.0))
    apart = [s[cue == 1].mean() - s[cue == 0].mean() for s in (plain, trusting)]
    assert apart[1] > apart[0] + 0.1


@pytest.mark.parametrize("trust", [0.0, 2.0])
@pytest.mark.filterwarnings("error")
def test_features_that_do_not_vary_tell_nothing(trust: float):
    fold = assign_folds(20, 4, 0)
    fit = cross_fit(
        prepare(np.zeros((20, 3), np.float32), fold), np.eye(2, dtype=np.float32)[fold % 2], trust
    )
    assert not fit.held_out.any() and not fit.weight.any()
