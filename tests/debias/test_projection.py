"""Null-space projection: its algebra, zero and deficient heads, folding, the gradient option."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from d2cp.debias.projection import (
    fold,
    null_space_projection,
    null_space_projection_with_grad,
    row_space,
)


def matrix(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def literal_projector(weight: Tensor) -> Tensor:
    """I - W^T (W W^T)^+ W in float64."""
    w = weight.double()
    return torch.eye(w.shape[1], dtype=torch.float64) - w.T @ torch.linalg.pinv(w @ w.T) @ w


def well_conditioned(rows: int, columns: int, seed: int) -> Tensor:
    """Singular values in [0.1, 10]: of one that is nearly 0, rounding chooses the direction."""
    left, right = (torch.linalg.qr(matrix(n, rows, seed=seed + n))[0] for n in (rows, columns))
    values = 10 ** torch.empty(rows).uniform_(-1, 1, generator=torch.Generator().manual_seed(seed))
    return left @ torch.diag(values) @ right.T


@settings(max_examples=30, deadline=None)
@given(classes=st.integers(1, 6), width=st.integers(6, 40), seed=st.integers(0, 10**6))
def test_is_the_orthogonal_projector(classes: int, width: int, seed: int) -> None:
    weight = well_conditioned(classes, width, seed)
    p = null_space_projection(torch.eye(width), row_space(weight))
    assert torch.allclose(p.double(), literal_projector(weight), atol=1e-4)
    assert torch.allclose(p @ p, p, atol=1e-5)
    assert torch.allclose(p, p.T, atol=1e-5)
    assert (weight @ p).abs().max() < 1e-4 * weight.abs().max()


@pytest.mark.parametrize(
    ("weight", "rank"),
    [
        (torch.zeros(2, 8), 0),
        (torch.stack([matrix(8), 2 * matrix(8)]), 1),
        (torch.stack([matrix(8), torch.zeros(8)]), 1),
        (1e-20 * matrix(2, 8), 2),
        (1e15 * matrix(3, 8), 3),
    ],
)
def test_rank_of_degenerate_heads(weight: Tensor, rank: int) -> None:
    basis = row_space(weight)
    assert basis.shape == (8, len(weight))
    assert int((basis.norm(dim=0) > 0.5).sum()) == rank
    h = matrix(5, 8, seed=1)
    projected = null_space_projection(h, basis)
    assert torch.isfinite(projected).all()
    if rank == 0:
        assert torch.equal(projected, h)


def test_difference_keeps_the_common_direction() -> None:
    weight = matrix(2, 8)
    common = weight.sum(0)
    basis = row_space(weight, "difference")
    difference = weight[1] - weight[0]
    assert null_space_projection(difference, basis).abs().max() < 1e-5
    orthogonal = common - (common @ difference) / (difference @ difference) * difference
    assert torch.allclose(null_space_projection(orthogonal, basis), orthogonal, atol=1e-5)
    assert null_space_projection(common, row_space(weight)).abs().max() < 1e-5


def test_folding_gives_the_same_logits() -> None:
    weight, other, h = matrix(3, 64, seed=1), matrix(2, 64, seed=2), matrix(10, 64, seed=3)
    basis = row_space(other)
    unfolded = null_space_projection(h, basis) @ weight.T
    assert torch.allclose(h @ fold(weight, basis).T, unfolded, atol=1e-5)


@pytest.mark.parametrize("rank", ["full", "difference"])
def test_gradient_option(rank: str) -> None:
    weight, h = matrix(2, 8).requires_grad_(), matrix(4, 8, seed=1)
    with_grad = null_space_projection_with_grad(h, weight, rank)  # type: ignore[arg-type]
    detached = null_space_projection(h, row_space(weight, rank))  # type: ignore[arg-type]
    assert torch.allclose(with_grad, detached, atol=1e-5)
    assert not detached.requires_grad
    direction, eps = matrix(4, 8, seed=2), 1e-3
    (gradient,) = torch.autograd.grad((with_grad * direction).sum(), weight)
    bump = matrix(2, 8, seed=3)

    def value(w: Tensor) -> Tensor:
        p = null_space_projection_with_grad(h.double(), w.double(), rank)  # type: ignore[arg-type]
        return (p * direction).sum()

    with torch.no_grad():
        numeric = (value(weight + eps * bump) - value(weight - eps * bump)) / (2 * eps)
    assert (gradient * bump).sum().item() == pytest.approx(numeric.item(), rel=2e-2)


def test_equal_singular_values_have_a_finite_gradient() -> None:
    weight = torch.eye(2, 6).requires_grad_()
    null_space_projection_with_grad(matrix(3, 6), weight).square().sum().backward()
    assert weight.grad is not None and torch.isfinite(weight.grad).all()


def test_mixed_precision_projects_in_float32() -> None:
    weight, h = matrix(2, 32), matrix(4, 32, seed=1)
    exact = null_space_projection(h, row_space(weight))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = null_space_projection(h, row_space(weight))
        with_grad = null_space_projection_with_grad(h, weight)
    assert torch.equal(found, exact)
    assert torch.allclose(with_grad, exact, atol=1e-5)
    half = null_space_projection(h.bfloat16(), row_space(weight))
    assert half.dtype == torch.bfloat16 and torch.allclose(half.float(), exact, atol=0.05)
