"""GroupDRO against a literal reference; absent groups; general numbers of groups."""

import math

import pytest
import torch

from d2cp.debias.group_losses import GroupDRO, group_losses


def literal_step(
    q: list[float], losses: list[float], groups: list[int], eta: float
) -> tuple[list[float], float]:
    means = []
    for g in range(len(q)):
        members = [loss for loss, group in zip(losses, groups, strict=True) if group == g]
        means.append(sum(members) / len(members) if members else 0.0)
    q = [weight * math.exp(eta * mean) for weight, mean in zip(q, means, strict=True)]
    q = [weight / sum(q) for weight in q]
    return q, sum(weight * mean for weight, mean in zip(q, means, strict=True))


@pytest.mark.parametrize("count", [2, 4, 9])
def test_matches_the_literal_update(count: int) -> None:
    generator = torch.Generator().manual_seed(count)
    dro, q = GroupDRO(count, eta=0.3), [1 / count] * count
    for _ in range(50):
        losses = torch.rand(7, generator=generator) * 3
        groups = torch.randint(count, (7,), generator=generator)
        q, expected = literal_step(q, losses.tolist(), groups.tolist(), 0.3)
        assert dro(losses, groups).item() == pytest.approx(expected, rel=1e-5)
        assert torch.allclose(dro.log_q.exp(), torch.tensor(q), atol=1e-6)


def test_absent_group_has_loss_zero_and_factor_one() -> None:
    dro = GroupDRO(4, eta=0.5)
    losses = torch.tensor([1.0, 2.0], requires_grad=True)
    loss = dro(losses, torch.tensor([0, 0]))
    loss.backward()
    assert torch.isfinite(dro.log_q).all()
    assert dro.log_q[1] == dro.log_q[2] == dro.log_q[3] < dro.log_q[0]
    assert losses.grad is not None and torch.isfinite(losses.grad).all()
    assert loss.item() == pytest.approx(1.5 * dro.log_q[0].exp().item())


def test_weights_survive_long_runs_of_large_losses() -> None:
    dro = GroupDRO(4, eta=1.0)
    for _ in range(500):
        assert math.isfinite(dro(torch.tensor([50.0, 0.1]), torch.tensor([0, 1])).item())
    assert dro.log_q.exp().sum().item() == pytest.approx(1, abs=1e-5)
    assert torch.isfinite(dro.log_q).all()


def test_gradient_does_not_flow_through_the_weights() -> None:
    dro = GroupDRO(2, eta=1.0)
    losses = torch.tensor([1.0, 3.0, 5.0], requires_grad=True)
    dro(losses, torch.tensor([0, 1, 1])).backward()
    q = dro.log_q.exp()
    assert losses.grad is not None
    assert torch.allclose(losses.grad, torch.stack([q[0], q[1] / 2, q[1] / 2]))


def test_the_loss_of_a_group_is_the_mean_of_its_images() -> None:
    g = torch.tensor([2, 3, 7, 7])
    means = group_losses(torch.tensor([1.0, 2.0, 3.0, 5.0]), g, 9)
    assert means.tolist() == [0, 0, 1, 2, 0, 0, 0, 4, 0]


def test_weights_are_part_of_the_state() -> None:
    dro = GroupDRO(2, eta=1.0)
    dro(torch.tensor([1.0, 0.0]), torch.tensor([0, 1]))
    other = GroupDRO(2, eta=1.0)
    other.load_state_dict(dro.state_dict())
    assert torch.equal(other.log_q, dro.log_q)
