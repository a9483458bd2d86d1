from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import disentanglement as dis
from d2cp.mine import quality


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=25))
def test_auroc_against_every_pair(rows):
    scalar = np.array([[float(s)] for s, _ in rows])
    flag = np.array([f for _, f in rows])
    pairs = [
        1.0 if p > n else 0.5 if p == n else 0.0 for p in scalar[flag, 0] for n in scalar[~flag, 0]
    ]
    area = float(np.mean(pairs)) if pairs else 0.5
    assert quality.concept_auroc(scalar, flag)[0] == pytest.approx(max(area, 1 - area))


@settings(deadline=None)
@given(st.integers(0, 1000), st.integers(1, 4), st.integers(1, 4))
@example(190, 4, 2)  # moving a left-over value would cost the matching more than it gains
def test_matching_is_the_best_one_to_one_and_left_overs_go_where_they_cover_most(
    seed, pseudo_values, true_values
):
    generator = np.random.default_rng(seed)
    pseudo = np.append(generator.integers(pseudo_values, size=40), pseudo_values - 1)
    true = np.append(generator.integers(true_values, size=40), true_values - 1)
    found = quality.match_values(pseudo, true)
    recall = np.zeros((pseudo_values, true_values))
    for p, t in itertools.product(range(pseudo_values), range(true_values)):
        if (true == t).any():
            recall[p, t] = np.mean(pseudo[true == t] == p)
    pairs = min(pseudo_values, true_values)
    matchings = [
        list(zip(left, right, strict=True))
        for left in itertools.combinations(range(pseudo_values), pairs)
        for right in itertools.permutations(range(true_values), pairs)
    ]
    best = max(sum(recall[pair] for pair in pairs) for pairs in matchings)

    def is_found(pairs):
        left_over = set(range(pseudo_values)) - {p for p, _ in pairs}
        return (
            all(found[p] == t for p, t in pairs)
            and sum(recall[pair] for pair in pairs) == pytest.approx(best)
            and all(recall[p, found[p]] == recall[p].max() for p in left_over)
        )

    assert any(is_found(pairs) for pairs in matchings)


def test_score_against_truth_matches_on_train_and_scores_every_split():
    y = np.array([0, 0, 1, 1, 0, 1, 0, 1])
    a = np.array([0, 1, 0, 1, 0, 1, 1, 1])
    pseudo = 1 - a
    pseudo[6] = a[6]
    scalars = np.stack([np.arange(8.0), a + 0.01 * np.arange(8)], axis=1)
    found = quality.score_against_truth(
        pseudo, a, y, {"train": np.arange(4), "val": np.arange(4, 8), "test": np.arange(0)}, scalars
    )
    assert found["matching"] == {"0": 1, "1": 0}
    assert found["recall"]["train"] == {"0,0": 1.0, "0,1": 1.0, "1,0": 1.0, "1,1": 1.0}
    assert found["recall"]["val"] == {"0,0": 1.0, "0,1": 0.0, "1,1": 1.0}
    assert found["balanced_accuracy"]["val"] == pytest.approx((1 + 2 / 3) / 2)
    assert found["agreement"]["val"] == 0.75
    assert "test" not in found["recall"]
    assert found["best_concept"]["attribute"] == {"concept": 1, "auroc": 1.0}


def test_best_concepts_of_three_values():
    a = np.arange(30) % 3
    scalars = np.stack([np.random.default_rng(0).normal(size=30), 1.0 * (a == 2), a == 0], axis=1)
    found = quality.best_concepts(scalars, a)
    assert found["concept"]["0"] == 2 and found["concept"]["2"] == 1
    assert found["auroc"] > 0.85


def factors_and_codes(kind: str, n: int = 3000):
    generator = np.random.default_rng(0)
    factors = np.stack([generator.integers(10, size=n), generator.integers(3, size=n)], axis=1)
    clean = factors + 0.05 * generator.normal(size=(n, 2))
    clean = (clean - clean.mean(axis=0)) / clean.std(axis=0)
    if kind == "perfect":
        extra = 1e-4 * generator.normal(size=(n, 2))
        return factors, np.concatenate([clean, extra], axis=1)
    if kind == "rotated":
        turn = np.array([[1, -1], [1, 1]]) / np.sqrt(2)
        return factors, clean @ turn
    return factors, generator.normal(size=(n, 4))


@pytest.mark.parametrize(("kind", "low", "high"), [
    ("perfect", 0.99, 1.0), ("rotated", 0.0, 0.75), ("noise", 0.0, 0.7),
])  # fmt: skip
def test_factor_vae_score(kind, low, high):
    factors, codes = factors_and_codes(kind)
    assert low <= dis.factor_vae_score(codes, factors, seed=0, votes=300) <= high


def test_factor_vae_of_dead_codes_is_chance():
    factors, _ = factors_and_codes("noise")
    assert dis.factor_vae_score(np.zeros((len(factors), 3)), factors, seed=0) == 0.5


def test_dci_tells_perfect_from_entangled_from_noise():
    scores = {}
    for kind in ("perfect", "rotated", "noise"):
        factors, codes = factors_and_codes(kind)
        scores[kind] = dis.dci(codes[:2000], factors[:2000], codes[2000:], factors[2000:], seed=0)
    assert scores["perfect"].disentanglement > 0.98 and scores["perfect"].completeness > 0.98
    assert scores["perfect"].informativeness > 0.98
    assert scores["rotated"].disentanglement < 0.5 and scores["rotated"].completeness < 0.5
    assert scores["noise"].informativeness < 0.4 and scores["noise"].disentanglement < 0.1


def test_concentration_by_hand():
    importance = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    assert dis.disentanglement(importance) == pytest.approx((1 + 1 + 0) / 3)
    entropy = -(2 / 3 * np.log(2 / 3) + 1 / 3 * np.log(1 / 3)) / np.log(3)
    assert dis.completeness(importance) == pytest.approx(1 - entropy)
    assert dis.disentanglement(np.zeros((3, 2))) == 0.0
