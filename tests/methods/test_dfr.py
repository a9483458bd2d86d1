"""DFR: the regression against its optimality conditions, balanced draws, cross-fitting."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from d2cp.compare.sparse_logistic import fit_logistic, objective
from d2cp.methods.dfr import Dfr, averaged_head, balanced_subset, cross_fitted, halves


def problem(n: int = 80, width: int = 6, classes: int = 2, seed: int = 0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, width, generator=generator).double()
    y = torch.randint(classes, (n,), generator=generator)
    x[torch.arange(n), y] += 1.5
    return x, y


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("strength", [1.0, 0.1, 0.03])
def test_l1_meets_its_optimality_conditions(classes, strength):
    """|gradient| <= 1/C where a weight is 0, and = -sign/C elsewhere; 0 at the offset."""
    x, y = problem(classes=classes)
    weight, bias = fit_logistic(x, y, classes, strength=strength, steps=20000, tolerance=1e-12)
    w, b = weight.clone().requires_grad_(), bias.clone().requires_grad_()
    torch.nn.functional.cross_entropy(x @ w.T + b, y, reduction="sum").backward()
    zero = weight == 0
    assert w.grad is not None and b.grad is not None
    assert b.grad.abs().max() < 1e-3
    assert (w.grad[zero].abs() <= 1 / strength + 1e-3).all()
    torch.testing.assert_close(w.grad[~zero], -weight[~zero].sign() / strength, atol=1e-3, rtol=0)
    assert zero.any()


def test_l2_is_the_least_of_its_objective():
    x, y = problem()
    weight, bias = fit_logistic(x, y, 2, strength=0.3, penalty="l2", steps=20000, tolerance=1e-12)
    w, b = weight.clone().requires_grad_(), bias.clone().requires_grad_()
    objective(w, b, x, y, 0.3, "l2").backward()
    assert w.grad is not None and b.grad is not None
    assert max(w.grad.abs().max(), b.grad.abs().max()) < 1e-4


def test_the_loop_stops_close_enough_to_the_optimum():
    x, y = problem()
    quick = fit_logistic(x, y, 2, strength=0.3)
    exact = fit_logistic(x, y, 2, strength=0.3, steps=20000, tolerance=1e-12)
    reached, least = (objective(*head, x, y, 0.3, "l1").item() for head in (quick, exact))
    assert least <= reached < least * 1.002


def test_balanced_subsets_have_the_smallest_group_s_number_of_each():
    groups = np.array([0] * 30 + [1] * 4 + [3] * 9)
    found = balanced_subset(groups, np.random.default_rng(0))
    assert np.unique(groups[found], return_counts=True)[1].tolist() == [4, 4, 4]
    assert len(set(found)) == 12
    half = halves(groups, np.random.default_rng(0))
    assert [int(half[groups == g].sum()) for g in (0, 1, 3)] == [15, 2, 4]


def test_the_head_is_the_mean_of_the_draws():
    x, y = problem()
    groups = 2 * y.numpy() + (np.arange(len(y)) % 5 == 0)

    def rng():
        return np.random.default_rng(3)

    one, generator = [], rng()
    for _ in range(4):
        part = torch.from_numpy(balanced_subset(groups, generator))
        one.append(fit_logistic(x[part], y[part], 2, strength=0.3)[0])
    weight, _ = averaged_head(x, y, groups, 2, strength=0.3, penalty="l1", draws=4, generator=rng())
    torch.testing.assert_close(weight, torch.stack(one).mean(0))


def test_no_image_is_judged_by_a_head_that_saw_it():
    """Labels are noise: a head that saw an image could know it, a cross-fitted one cannot."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(120, 200, generator=generator)
    y = torch.randint(2, (120,), generator=generator)
    groups = 2 * y.numpy()
    _, logits = cross_fitted(x, y, groups, 2, penalty="l1", seed=0)
    weight, bias = fit_logistic(x, y, 2, strength=1.0)
    seen = ((x @ weight.T + bias).argmax(1) == y).float().mean()
    assert seen > 0.95 and (logits.argmax(1) == y).float().mean() < 0.7


def test_unlearns_a_shortcut_that_validation_groups_reveal(make_task):
    rng = np.random.default_rng(0)
    y = np.arange(2000) % 2
    a = np.where(rng.random(2000) < 0.05, 1 - y, y)
    task = make_task(groups=2 * y + a, values=2, classes=2, budget=6000)
    task.val_attribute = a[task.val]
    predictor = Dfr().fit(task, Dfr.spec.values())
    right = predictor.logits(task.val).argmax(1).numpy() == task.y[task.val]
    against = a[task.val] != task.y[task.val]
    assert right[against].mean() > 0.7
    held = predictor.held_out(task.val)
    some = task.val[[5, 2, 40]]
    assert torch.equal(predictor.held_out(some), held[[5, 2, 40]])
    assert not torch.equal(held, predictor.logits(task.val))
