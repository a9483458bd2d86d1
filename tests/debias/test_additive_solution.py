"""The additive read-out: its loss and offset term by term, and that it takes no shortcut."""

import math

import numpy as np
import torch

from d2cp.debias.additive_solution import (
    additive_energies,
    additive_loss,
    solve_additive,
    uniform_offset,
)
from d2cp.debias.solved_head import solve_head

N, WIDTH, CLASSES, VALUES = 12, 3, 2, 3
DRAW = torch.Generator().manual_seed(0)
X = torch.randn(N, WIDTH, generator=DRAW, dtype=torch.float64)
HEAD = torch.randn(CLASSES + VALUES, WIDTH + 1, generator=DRAW, dtype=torch.float64)
OFFSET = torch.randn(CLASSES, VALUES, generator=DRAW, dtype=torch.float64)
PRIOR = torch.rand(CLASSES, VALUES, generator=DRAW, dtype=torch.float64) + 0.1


def energy(i: int, y: int, a: int) -> float:
    """-E1(x, y) - E2(x, a)."""
    total = 0.0
    for row in (HEAD[y], HEAD[CLASSES + a]):
        total += sum(float(row[k] * X[i, k]) for k in range(WIDTH)) + float(row[WIDTH])
    return total


def test_loss_and_offset_are_the_equations_written_out() -> None:
    shares = np.random.default_rng(0).dirichlet(np.ones(VALUES), N)
    y = [i % CLASSES for i in range(N)]
    targets = torch.zeros(N, CLASSES, VALUES, dtype=torch.float64)
    groups = [(c, a) for c in range(CLASSES) for a in range(VALUES)]
    loss, sums = 0.0, dict.fromkeys(groups, 0.0)
    for i in range(N):
        evidence = 0.0
        for c, a in groups:
            evidence += math.exp(energy(i, c, a) - float(OFFSET[c, a])) * float(PRIOR[c, a])
        for a in range(VALUES):
            targets[i, y[i], a] = shares[i, a]
            joint = math.exp(energy(i, y[i], a) - float(OFFSET[y[i], a])) * float(PRIOR[y[i], a])
            loss -= shares[i, a] * math.log(joint / evidence) / N
        for c, a in groups:
            sums[c, a] += math.exp(energy(i, c, a)) / evidence / N
    loss += 0.3 / 2 * float((HEAD[:, :-1] ** 2).sum())
    found = additive_loss(HEAD, OFFSET, X, targets, PRIOR, 0.3)
    assert math.isclose(float(found), loss, rel_tol=1e-9)
    star = uniform_offset(additive_energies(HEAD, X, CLASSES), OFFSET, PRIOR)
    for c, a in groups:
        assert math.isclose(float(star[c, a]), math.log(sums[c, a]), rel_tol=1e-9)


def correlated(n: int = 2000) -> tuple[torch.Tensor, np.ndarray, np.ndarray]:
    """The value, which goes with the class on 95% of the images, shows in the first axis, the
    class in the second."""
    draw = np.random.default_rng(1)
    y = np.arange(n) % 2
    a = np.where(draw.random(n) < 0.95, y, 1 - y)
    x = draw.normal(size=(n, 5))
    x[:, 0] += 1.5 * (2 * a - 1)
    x[:, 1] += 1.0 * (2 * y - 1)
    return torch.from_numpy(x), y, a


def test_the_shortcut_is_left_to_the_value_s_energy() -> None:
    x, y, a = correlated()
    additive = solve_additive(x, torch.from_numpy(y), np.eye(2)[a], 2, 0.01)
    plain = solve_head(x, torch.from_numpy(y), np.ones(len(y)), 2, 0.01)
    leans = [
        float((h[1, 0] - h[0, 0]).abs() / (h[1, 1] - h[0, 1]).abs()) for h in (additive, plain)
    ]
    assert leans[0] < 0.15 < 0.6 < leans[1]


def test_values_that_say_nothing_leave_the_plain_head() -> None:
    x, y, _ = correlated(400)
    shares = np.full((400, 2), 0.5)
    additive = solve_additive(x, torch.from_numpy(y), shares, 2, 0.05)
    plain = solve_head(x, torch.from_numpy(y), np.ones(400), 2, 0.05)
    difference = [(h[1] - h[0])[:-1] for h in (additive, plain)]
    torch.testing.assert_close(*difference, atol=1e-3, rtol=1e-2)
