"""CNC's and C-Adapter's sets, and SupCon written out."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch.nn.functional import cosine_similarity

from d2cp.compare.contrastive import supcon
from d2cp.methods.c_adapter import (
    NEGATIVES,
    POSITIVES,
    class_means,
    neighbours_of_other_classes,
    tuple_loss,
    tuple_order,
)
from d2cp.methods.cnc import contrastive_sets, two_sided_contrast


def literal_supcon(anchors, others, positive, negative, tau):
    losses = []
    for i in range(len(anchors)):
        s = [cosine_similarity(anchors[i], o, dim=0).item() / tau for o in others]
        p = [j for j in range(len(others)) if positive[i, j]]
        n = [j for j in range(len(others)) if negative[i, j]]
        if p and n:
            total = sum(math.exp(s[j]) for j in p + n)
            losses.append(-sum(math.log(math.exp(s[j]) / total) for j in p) / len(p))
    return sum(losses) / len(losses) if losses else 0.0


def test_supcon_against_the_sum_written_out():
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(9, 5, generator=generator)
    positive = torch.rand(9, 9, generator=generator) < 0.3
    negative = (torch.rand(9, 9, generator=generator) < 0.3) & ~positive
    positive[0] = False  # an anchor without positives is left out
    found = supcon(z, z, positive, negative, 0.1)
    assert abs(found.item() - literal_supcon(z, z, positive, negative, 0.1)) < 1e-4


def test_supcon_without_pairs_is_zero_with_a_gradient():
    z = torch.randn(3, 4, requires_grad=True)
    empty = torch.zeros(3, 3, dtype=torch.bool)
    loss = supcon(z, z, empty, empty, 0.1)
    loss.backward()
    assert loss.item() == 0 and z.grad is not None


def test_cnc_sets_of_both_sides():
    y = torch.tensor([0, 0, 1, 1, 2])
    answer = torch.tensor([0, 1, 1, 0, 1])
    right, positive, negative = contrastive_sets(y, answer)
    assert right.tolist() == [True, False, True, False, False]
    for i in range(5):
        for j in range(5):
            sides = (y[i] == answer[i]) != (y[j] == answer[j])  # one right, one wrong
            assert positive[i, j] == (y[i] == y[j] and sides)
            assert negative[i, j] == (answer[i] == answer[j] and sides)
    assert not (positive & negative).any()
    assert negative[1].tolist() == [
        False,
        False,
        True,
        False,
        False,
    ]  # 4 errs too


def test_cnc_contrast_adds_up_both_sides():
    h = torch.randn(8, 5, generator=torch.Generator().manual_seed(1))
    y, answer = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1]), torch.tensor([0, 0, 1, 1, 1, 1, 0, 0])
    right, positive, negative = contrastive_sets(y, answer)
    z = h - h.mean(0)
    wanted = sum(
        literal_supcon(z[side], z, positive[side], negative[side], 0.1) for side in (right, ~right)
    )
    assert abs(two_sided_contrast(h, y, answer, 0.1).item() - wanted) < 1e-4


def test_cnc_gains_nothing_from_a_constant_feature():
    """Features that follow ERM's answer, as at the start: with plain cosines one common vector
    takes the loss down to chance, which is how they collapsed; centred, it changes nothing."""
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(80) % 2
    answer = torch.where(torch.arange(80) % 4 < 2, y, 1 - y)
    h = torch.randn(80, 16, generator=generator)
    h[:, 0] += 6 * (2 * answer - 1)
    common = torch.randn(16, generator=generator)
    right, positive, negative = contrastive_sets(y, answer)
    near, collapsed = (
        supcon(x[right], x, positive[right], negative[right], 0.1) for x in (h, h + 100 * common)
    )
    assert collapsed < near / 2
    torch.testing.assert_close(
        two_sided_contrast(h + 100 * common, y, answer, 0.1),
        two_sided_contrast(h, y, answer, 0.1),
        rtol=1e-3,
        atol=0,
    )


def test_class_means():
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    y = torch.tensor([0, 0, 2, 2, 2, 0])
    torch.testing.assert_close(class_means(x, y, 3)[2], x[2:5].mean(0))
    assert class_means(x, y, 3)[1].abs().sum() == 0


def test_c_adapter_tuples():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 30)
    x = torch.from_numpy(rng.normal(size=(90, 8))).float()
    right = rng.random(90) < 0.8
    anchors = np.flatnonzero(~right)
    near = neighbours_of_other_classes(x, torch.from_numpy(y), anchors, 5)
    similarity = torch.nn.functional.normalize(x, dim=1) @ torch.nn.functional.normalize(x, dim=1).T
    for anchor, found in zip(anchors, near, strict=True):
        others = np.flatnonzero(y != y[anchor])
        wanted = others[np.argsort(-similarity[anchor][others].numpy())[:5]]
        assert set(found) == set(wanted)
    size = 1 + POSITIVES + NEGATIVES
    rows = tuple_order(anchors, near, right, y, 4, 10 * 4 * size, seed=0)(3).reshape(-1, size)
    assert not right[rows[:, 0]].any()
    assert right[rows[:, 1 : 1 + POSITIVES]].all()
    assert (y[rows[:, 1 : 1 + POSITIVES]] == y[rows[:, :1]]).all()
    assert (y[rows[:, 1 + POSITIVES :]] != y[rows[:, :1]]).all()


def test_c_adapter_loss_takes_each_anchor_s_own_tuple_and_the_class_vectors():
    size = 1 + POSITIVES + NEGATIVES
    generator = torch.Generator().manual_seed(2)
    z = torch.randn(2 * size, 6, generator=generator)
    vectors = torch.randn(3, 6, generator=generator)
    y = torch.tensor([1] * size + [2] * size)
    losses = []
    for t, label in ((0, 1), (1, 2)):
        part = z[t * size : (t + 1) * size]
        others = torch.cat([part[1:], vectors])
        positive = torch.tensor(
            [True] * POSITIVES + [False] * NEGATIVES + [c == label for c in range(3)]
        )
        losses.append(literal_supcon(part[:1], others, positive[None], ~positive[None], 0.1))
    assert abs(tuple_loss(z, vectors, y, 0.1).item() - np.mean(losses)) < 1e-4
