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
    neighbours_of_other_classes,
    tuple_loss,
    tuple_order,
)
from d2cp.methods.cnc import contrastive_sets


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


def test_cnc_sets():
    y = torch.tensor([0, 0, 1, 1])
    answer = torch.tensor([0, 1, 1, 0])
    anchor, positive, negative = contrastive_sets(y, answer)
    assert anchor.tolist() == [True, False, True, False]
    assert positive[0].tolist() == [False, True, False, False]  # same class, other answer
    assert negative[0].tolist() == [False, False, False, True]  # same answer, other class
    assert positive[2].tolist() == [False, False, False, True]
    assert negative[2].tolist() == [False, True, False, False]


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
