"""Findings as concepts: standardised scores, in rank order, no more than asked for."""

from types import SimpleNamespace

import numpy as np

from d2cp.scan.as_concepts import finding_scalars

N = 200
TRAIN = np.arange(150)


def scan(*findings):
    made = [
        SimpleNamespace(rank=rank, outcome=outcome, scores=scores.astype(np.float32))
        for rank, (outcome, scores) in enumerate(findings, start=1)
    ]
    return SimpleNamespace(findings=made)


def test_two_classes_give_one_scalar_a_finding_and_chance_gives_none():
    draw = np.random.default_rng(0)
    first, second, third = (draw.normal(3, 7, (N, 1)) for _ in range(3))
    found = scan(("found", first), ("none", second), ("weak", third))
    scalars, ranks = finding_scalars(found, TRAIN, 4)
    assert ranks == (1, 3) and scalars.shape == (N, 2)
    for column, scores in zip(scalars.T, (first, third), strict=True):
        assert abs(column[TRAIN].mean()) < 1e-5 and abs(column[TRAIN].std() - 1) < 1e-5
        assert np.corrcoef(column, scores[:, 0])[0, 1] > 0.9999
    assert finding_scalars(found, TRAIN, 1)[1] == (1,)
    assert finding_scalars(scan(("none", second)), TRAIN, 4)[1] == ()


def test_several_classes_give_the_directions_that_vary_most():
    draw = np.random.default_rng(1)
    strong, faint = draw.normal(0, 5, N), draw.normal(0, 0.5, N)
    scores = np.stack([strong, -strong + faint, -faint], axis=1)
    scalars, ranks = finding_scalars(scan(("found", scores), ("found", scores)), TRAIN, 3)
    assert ranks == (1, 1, 2)
    assert abs(np.corrcoef(scalars[:, 0], strong)[0, 1]) > 0.99
    assert abs(np.corrcoef(scalars[TRAIN, 0], scalars[TRAIN, 1])[0, 1]) < 1e-4
