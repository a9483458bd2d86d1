"""CRM against its closed form: energies of a distribution that is known exactly."""

from __future__ import annotations

import math

import torch

from d2cp.methods.crm import additive_energies, class_scores, extrapolated_offset

CLASSES, ATTRIBUTES, VALUES = 2, 3, 6


def synthetic() -> tuple[torch.Tensor, torch.Tensor]:
    """-E [values of x, groups], additive, and the log partition of every group."""
    generator = torch.Generator().manual_seed(3)
    logits = torch.randn(VALUES, CLASSES + ATTRIBUTES, generator=generator).double()
    negative = additive_energies(logits, CLASSES)
    return negative, negative.logsumexp(0)


def test_energies_add_up():
    logits = torch.tensor([[1.0, 2.0, 10.0, 20.0, 30.0]])
    assert additive_energies(logits, 2).tolist() == [[11.0, 21.0, 31.0, 12.0, 22.0, 32.0]]


def test_offset_equals_the_formula_written_out():
    negative, partition = synthetic()
    prior = torch.tensor([0.4, 0.1, 0.1, 0.2, 0.1, 0.1]).double()
    found = extrapolated_offset(negative, partition, prior.log())
    for z in range(CLASSES * ATTRIBUTES):
        total = 0.0
        for x in range(VALUES):
            evidence = sum(
                math.exp(negative[x, k] - partition[k]) * prior[k].item()
                for k in range(CLASSES * ATTRIBUTES)
            )
            total += math.exp(negative[x, z]) / evidence
        assert abs(found[z].item() - math.log(total / VALUES)) < 1e-9


def test_offset_of_a_group_never_seen_is_its_true_partition():
    """x drawn from training, where one group has no mass: B* is still log sum_x exp(-E)."""
    negative, partition = synthetic()
    prior = torch.tensor([0.5, 0.2, 0.1, 0.1, 0.1, 0.0]).double()
    train = ((negative - partition).exp() * prior).sum(1)  # p_train(x)
    generator = torch.Generator().manual_seed(0)
    x = torch.multinomial(train, 400_000, replacement=True, generator=generator)
    found = extrapolated_offset(negative[x], partition, prior.log())
    assert (found - partition).abs().max() < 0.02


def test_prediction_is_the_uniform_posterior_summed_over_attributes():
    negative, partition = synthetic()
    joint = (negative - partition).exp().unflatten(1, (CLASSES, ATTRIBUTES)).sum(2)
    wanted = joint / joint.sum(1, keepdim=True)
    torch.testing.assert_close(class_scores(negative, partition, CLASSES).softmax(1), wanted)
