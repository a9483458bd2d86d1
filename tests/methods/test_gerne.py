"""GERNE's compositions: beta = -1 samples as ERM does, c = 1 and beta = 0 resamples."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from d2cp.methods.gerne import (
    composed_rows,
    conditional,
    extrapolated_loss,
    extrapolation_bound,
    less_biased,
    paired_order,
)

Y = np.repeat([0, 1], [400, 600])
A = np.concatenate([np.repeat([0, 1], [380, 20]), np.repeat([0, 1], [60, 540])])


def shares(rows: np.ndarray) -> np.ndarray:
    counts = np.bincount(2 * Y[rows] + A[rows], minlength=4).reshape(2, 2)
    return counts / counts.sum(1, keepdims=True)


def test_conditional_is_the_training_set_s():
    assert np.allclose(conditional(Y, A, 2, 2), [[0.95, 0.05], [0.1, 0.9]])


def test_beta_minus_one_is_erm_s_loss_on_erm_s_composition():
    losses = torch.tensor([1.0, 3.0, 100.0, 200.0])
    assert extrapolated_loss(losses, -1.0) == pytest.approx(2.0)  # the biased half alone
    order = paired_order(conditional(Y, A, 2, 2), 0.7, Y, A, 50, 40_000, seed=0)(0)
    biased = order.reshape(-1, 100)[:, :50].ravel()
    assert np.allclose(shares(biased), [[0.95, 0.05], [0.1, 0.9]], atol=0.01)
    assert (Y[biased] == 0).mean() == pytest.approx(0.5, abs=0.01)  # classes uniform


def test_c_one_beta_zero_is_resampling():
    alpha = conditional(Y, A, 2, 2)
    assert np.allclose(less_biased(alpha, 1.0), 0.5)
    losses = torch.tensor([100.0, 200.0, 1.0, 3.0])
    assert extrapolated_loss(losses, 0.0) == pytest.approx(2.0)  # the less biased half alone
    order = paired_order(alpha, 1.0, Y, A, 50, 40_000, seed=0)(0)
    better = order.reshape(-1, 100)[:, 50:].ravel()
    counts = np.bincount(2 * Y[better] + A[better], minlength=4) / len(better)
    assert np.allclose(counts, 0.25, atol=0.01)


@pytest.mark.parametrize("c", [0.0, 0.3, 0.8])
def test_less_biased_composition(c):
    alpha = conditional(Y, A, 2, 2)
    rows = composed_rows(less_biased(alpha, c), Y, A, 40_000, np.random.default_rng(1))
    assert np.allclose(shares(rows), alpha + c * (0.5 - alpha), atol=0.01)


def test_bound_is_where_the_target_distribution_leaves_the_simplex():
    """The extrapolated target alpha + c (beta + 1) (1/A - alpha) has a cell at 0 on the bound."""
    alpha = np.array([[0.9, 0.1], [0.6, 0.4]])
    reach = extrapolation_bound(alpha)
    target = alpha + reach * (0.5 - alpha)
    assert target.min() == pytest.approx(0.0, abs=1e-12)
    assert extrapolation_bound(np.full((2, 2), 0.5)) == float("inf")


def test_missing_cell_and_class_leave_no_hole():
    y, a = np.array([0, 0, 2, 2]), np.array([0, 0, 0, 1])
    rows = composed_rows(np.full((3, 2), 0.5), y, a, 3000, np.random.default_rng(0))
    assert np.bincount(y[rows], minlength=3)[1] == 0
    assert (y[rows] == 0).mean() == pytest.approx(0.5, abs=0.05)
