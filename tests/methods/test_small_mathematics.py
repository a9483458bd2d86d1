"""JTT's copies, uLA's adjustment, GIC's objective, SAS's loss, MaskTune's rule."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from d2cp.methods.gic import class_given_spurious, comparison_divergence, gic_objective
from d2cp.methods.jtt import upsampled, upsampled_order
from d2cp.methods.masktune import hot_pixels
from d2cp.methods.sas import extreme_rows, prevailing, random_crops, shielding_loss
from d2cp.methods.ula import adjustment, updated_confusion


def randn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_jtt_shows_errors_lambda_times_as_often():
    wrong = np.array([False, True, False, True])
    assert upsampled(wrong, 3).tolist() == [0, 1, 1, 1, 2, 3, 3, 3]
    epochs = [upsampled_order(wrong, 3, 4, seed=0, epoch=e) for e in range(2)]  # two: all 8 once
    assert np.bincount(np.concatenate(epochs)).tolist() == [1, 3, 1, 3]


def test_ula_confusion_is_an_exponential_average_of_soft_counts():
    bias, y = randn(5, 2), torch.tensor([0, 1, 1, 0, 1])
    start = torch.tensor([[0.3, 0.2], [0.1, 0.4]])
    soft = torch.zeros(2, 2)
    for p, label in zip(bias.softmax(1), y, strict=True):
        for guess in range(2):
            soft[guess, label] += p[guess] / 5
    wanted = 0.9 * start + 0.1 * soft
    torch.testing.assert_close(updated_confusion(start, bias, y, 0.9), wanted)


def test_ula_adjustment_is_log_p_of_y_given_the_bias_s_answer():
    confusion = torch.tensor([[0.45, 0.05], [0.1, 0.4]])
    found = adjustment(confusion, torch.tensor([0, 1]), 2.0)
    wanted = 2 * torch.tensor([[0.9, 0.1], [0.2, 0.8]]).log()
    torch.testing.assert_close(found, wanted)
    assert torch.isfinite(adjustment(torch.zeros(2, 2), torch.tensor([0]), 1.0)).all()


def test_gic_conditional_and_divergence():
    hard = torch.eye(2)[torch.tensor([0, 0, 0, 1, 1])]
    table = class_given_spurious(hard, torch.tensor([0, 0, 1, 1, 1]), 2)
    torch.testing.assert_close(table, torch.tensor([[2 / 3, 1 / 3], [0, 1.0]]), atol=1e-3, rtol=0)
    p, q = torch.tensor([[0.7, 0.3]]), torch.tensor([[0.5, 0.5]])
    wanted = 0.7 * math.log(1.4) + 0.3 * math.log(0.6)
    assert comparison_divergence(p, q).item() == pytest.approx(wanted, abs=1e-6)
    assert comparison_divergence(p, p).item() == 0


def test_gic_objective_is_ce_minus_gamma_kl_and_prefers_the_feature_that_shifts():
    logits, other = randn(40, 2), randn(40, 2, seed=1)
    y, other_y = torch.arange(40) % 2, torch.arange(40) // 20
    plain = gic_objective(logits, y, other, other_y, 0.0)
    torch.testing.assert_close(plain, cross_entropy(logits, y))
    kl = comparison_divergence(
        class_given_spurious(logits.softmax(1), y, 2),
        class_given_spurious(other.softmax(1), other_y, 2),
    )
    torch.testing.assert_close(gic_objective(logits, y, other, other_y, 2.5), plain - 2.5 * kl)
    # a core predictor relates to y alike in both sets; a spurious one does not
    core = 4.0 * (2 * y.float() - 1)
    spurious_other = torch.stack([4.0 * (1 - 2 * other_y), 4.0 * (2 * other_y - 1)], 1) * -1
    core_logits = torch.stack([-core, core], 1)
    core_other = torch.stack([-4.0 * (2 * other_y - 1), 4.0 * (2 * other_y - 1)], 1).float()
    as_core = gic_objective(core_logits, y, core_other, other_y, 1.0)
    as_spurious = gic_objective(core_logits, y, spurious_other.float(), other_y, 1.0)
    assert as_spurious < as_core


def test_sas_loss_compares_a_class_with_its_own_pseudo_category_only():
    logits = randn(4, 6)
    target = torch.tensor([0, 2, 3, 5])  # 3 = pseudo-category of class 0, 5 = of class 2
    wanted = []
    for row, t in zip(logits, target.tolist(), strict=True):
        own = t % 3
        pair = row[[own, own + 3]]
        wanted.append(-pair.log_softmax(0)[t // 3])
    torch.testing.assert_close(shielding_loss(logits, target, 3), torch.stack(wanted).mean())


def test_sas_attribute_images():
    y, a = np.array([0] * 10 + [1] * 10), np.array([1] * 9 + [0] + [0] * 8 + [1] * 2)
    assert prevailing(y, a, 2, 2).tolist() == [1, 0]
    score = np.linspace(-1, 1, 20)
    rows = extreme_rows((score > 0).astype(np.int64), score, 1)
    assert rows[0] == 19 and set(rows) == set(range(10, 20))
    images = torch.arange(16.0).view(1, 1, 4, 4)
    crop = random_crops(images, torch.tensor([[0.99, 0.0, 0.99]]))  # a 2 x 2 corner, bottom left
    assert crop.shape == images.shape
    assert crop[0, 0, 0, 0] == 8 and crop[0, 0, -1, -1] == 13


def test_masktune_masks_what_is_two_deviations_above_the_mean_of_positive_heat():
    heat = torch.rand(3, 8, 8, generator=torch.Generator().manual_seed(0)) - 0.3
    heat[0, 2, 3] = 5.0
    heat[2] = 0.0
    found = hot_pixels(heat)
    for i in range(3):
        positive = heat[i][heat[i] > 0]
        if len(positive):
            limit = positive.mean() + 2 * positive.std(unbiased=False)
            assert torch.equal(found[i], heat[i] > limit)
    assert found[0, 2, 3] and not found[2].any()
