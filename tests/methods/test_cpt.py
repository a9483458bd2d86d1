"""CPT's linear program against the simplex itself, and the gradient it hands on."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from d2cp.methods.cpt import BALANCED, imbalance, mixed_step_loss, mixing_weights, program


def simplex_grid(groups: int, parts: int) -> np.ndarray:
    corners = [c for c in itertools.product(range(parts + 1), repeat=groups) if sum(c) == parts]
    return np.array(corners, dtype=np.float64) / parts


def brute_force(gram: np.ndarray, losses: np.ndarray, preference: np.ndarray) -> float | None:
    """The best feasible objective on the grid, constraints written out as in the description."""
    share = preference * losses / (preference * losses).sum()
    mu = sum(s * np.log(len(share) * s) for s in share)
    a = preference * (np.log(len(share) * share) - mu)
    ca = gram @ a
    best = None
    for alpha in simplex_grid(len(losses), 24):
        c_alpha = gram @ alpha
        if mu > 1e-4:
            value = alpha @ ca
            needed = np.where(ca > 0, -np.inf, ca) if (ca > 0).any() else np.zeros(len(ca))
            if (ca > 0).any():
                needed[(preference * losses) == (preference * losses).max()] = 0
            feasible = bool((c_alpha >= needed - 1e-12).all())
        else:
            value = (alpha @ gram).sum()
            feasible = bool((c_alpha >= -1e-12).all() and alpha @ ca >= -max(-ca.max(), 0) - 1e-12)
        if feasible and (best is None or value > best):
            best = value
    return best


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("balanced", [False, True])
def test_the_program_is_at_least_as_good_as_every_point_of_the_simplex(seed, balanced):
    rng = np.random.default_rng(seed)
    groups = 3 + seed % 2
    gradients = rng.normal(size=(groups, 6)) + rng.normal(size=6)
    gram = gradients @ gradients.T
    losses = (
        np.full(groups, 0.7)
        if balanced
        else rng.permutation(groups) + rng.uniform(0.05, 1, size=groups)
    )
    preference = np.ones(groups)
    assert (imbalance(losses, preference)[0] <= BALANCED) == balanced
    alpha = mixing_weights(gram, losses, preference)
    assert alpha.min() >= 0 and alpha.sum() == pytest.approx(1)
    best = brute_force(gram, losses, preference)
    objective, rows, rhs, extra, floor = program(gram, losses, preference)
    if best is None:  # the grid may miss a thin feasible set, the program may not
        feasible = (rows @ alpha >= rhs - 1e-6).all() and extra @ alpha >= floor - 1e-6
        assert feasible or np.allclose(alpha, 1 / groups)
        return
    assert (rows @ alpha >= rhs - 1e-6).all() and extra @ alpha >= floor - 1e-6
    assert objective @ alpha >= best - 1e-6


def test_the_worst_group_gets_the_weight_when_gradients_are_orthogonal():
    alpha = mixing_weights(np.eye(4), np.array([0.1, 0.1, 2.0, 0.1]), np.ones(4))
    assert alpha.argmax() == 2 and alpha[2] == pytest.approx(1)


def test_no_solution_falls_back_to_the_preference():
    opposed = np.array([[1.0, -1.0], [-1.0, 1.0]]) - 5 * np.ones((2, 2))  # not a Gram matrix
    preference = np.array([1.0, 3.0])
    assert np.allclose(mixing_weights(opposed, np.array([1.0, 1 / 3]), preference), [0.25, 0.75])


def test_the_surrogate_has_the_mixed_gradient_and_value():
    weight = torch.tensor([1.0, -2.0, 0.5], requires_grad=True)
    bias = torch.tensor(0.3, requires_grad=True)
    x = torch.randn(2, 3, generator=torch.Generator().manual_seed(0))
    losses = ((x @ weight + bias) ** 2).clone()
    chosen = np.array([0.25, 0.75])
    loss = mixed_step_loss(losses, [weight, bias], lambda gram, values: chosen)
    expected = (torch.tensor([0.25, 0.75]) * losses).sum()
    wanted = torch.autograd.grad(expected, [weight, bias], retain_graph=True)
    found = torch.autograd.grad(loss, [weight, bias])
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    for w, f in zip(wanted, found, strict=True):
        torch.testing.assert_close(w, f)
