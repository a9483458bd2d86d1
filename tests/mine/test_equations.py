"""Each CBCM equation against a slow version written as the paper writes it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from d2cp.mine import concepts as eq
from d2cp.mine.biased_classifier import Linear
from d2cp.mine.score import contributions, partial_logits, scalar_signs, signed_scalar_score

problems = st.tuples(
    st.integers(0, 10_000), st.integers(4, 30), st.integers(1, 6), st.integers(1, 4),
    st.integers(2, 4),
)  # fmt: skip


def make(problem):
    seed, n, concepts, width, classes = problem
    generator = np.random.default_rng(seed)
    tokens = generator.normal(size=(n, concepts, width))
    y = generator.integers(classes, size=n)
    weight = generator.normal(size=(classes, concepts, width))
    bias = generator.normal(size=classes)
    return tokens, y, weight, bias


@settings(deadline=None)
@given(problems)
def test_logits_and_confidence(problem):
    tokens, y, weight, bias = make(problem)
    n, concepts, width = tokens.shape
    logits = Linear(weight, bias).logits(tokens)
    p = eq.confidence(softmax(logits, axis=1), y)
    for i in range(n):
        z = [
            sum(weight[c, k, d] * tokens[i, k, d] for k in range(concepts) for d in range(width))
            + bias[c]
            for c in range(len(weight))
        ]
        np.testing.assert_allclose(logits[i], z, atol=1e-9)
        total = sum(math.exp(v) for v in z)
        assert p[i] == pytest.approx(math.exp(z[y[i]]) / total)


@settings(deadline=None)
@given(problems, st.floats(0.05, 1.0))
def test_subset_and_prototypes(problem, rho):
    tokens, y, weight, bias = make(problem)
    classes = len(weight)
    p = eq.confidence(softmax(Linear(weight, bias).logits(tokens), axis=1), y)
    subset = eq.high_confidence_subset(p, y, classes, rho)
    found = eq.prototypes(tokens, subset)
    for c in range(classes):
        members = [i for i in range(len(y)) if y[i] == c]
        ranked = sorted(members, key=lambda i: -p[i])
        keep = max(1, math.floor(rho * len(members) + 1e-9)) if members else 0
        assert sorted(ranked[:keep]) == subset[c].tolist()
        for k in range(tokens.shape[1]):
            mean = np.zeros(tokens.shape[2])
            for i in ranked[:keep]:
                mean += tokens[i, k] / keep
            np.testing.assert_allclose(found[c, k], mean, atol=1e-9)


@settings(deadline=None)
@given(problems)
def test_directions_scores_and_contrast(problem):
    _, _, weight, _ = make(problem)
    classes, concepts, width = weight.shape
    protos = np.random.default_rng(problem[0] + 1).normal(size=weight.shape)
    directions = eq.discriminative_directions(weight)
    scores, contrast = eq.bias_scores(protos, directions), eq.contrast(protos, directions)
    for k in range(concepts):
        for c in range(classes):
            others = [weight[o, k] for o in range(classes) if o != c]
            literal = weight[c, k] - sum(others) / len(others)
            np.testing.assert_allclose(directions[c, k], literal, atol=1e-9)
            inner = sum(protos[c, k, d] * literal[d] for d in range(width))
            assert scores[c, k] == pytest.approx(abs(inner), abs=1e-9)
    if classes == 2:
        delta = weight[1] - weight[0]
        np.testing.assert_allclose(directions[1], delta)
        np.testing.assert_allclose(scores, np.abs((protos * delta).sum(axis=2)), atol=1e-9)
        literal = np.abs(((protos[1] - protos[0]) * delta).sum(axis=1))
        np.testing.assert_allclose(contrast, literal, atol=1e-9)


@settings(deadline=None)
@given(
    st.integers(0, 10_000), st.integers(2, 5), st.integers(1, 8), st.integers(1, 10),
    st.sets(st.integers(0, 7), max_size=3),
)  # fmt: skip
def test_top_m_and_intersection(seed, classes, concepts, m, exclude):
    scores = np.random.default_rng(seed).integers(0, 4, size=(classes, concepts)).astype(float)
    exclude = {k for k in exclude if k < concepts}
    allowed = [k for k in range(concepts) if k not in exclude]
    per_class = eq.top_m(scores, m, exclude)
    for c in range(classes):
        assert list(per_class[c]) == sorted(allowed, key=lambda k: (-scores[c, k], k))[:m]
    chosen = eq.bias_concept_set(per_class)
    for k in range(concepts):
        votes = sum(k in row for row in per_class)
        assert (k in chosen) == (votes == 2 if classes == 2 else votes >= classes / 2)


@settings(deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4), st.integers(1, 8), st.integers(1, 12))
def test_m_is_raised_only_until_t_is_not_empty(seed, classes, concepts, m):
    scores = np.random.default_rng(seed).random((classes, concepts))
    chosen, per_class, used = eq.mined_concepts(scores, m)
    assert chosen and chosen == eq.bias_concept_set(per_class)
    assert all(len(row) == used for row in per_class)
    for smaller in range(min(m, concepts), used):
        assert not eq.bias_concept_set(eq.top_m(scores, smaller))
    if 2 * m > concepts and classes == 2:
        assert used == min(m, concepts)


@settings(max_examples=50, deadline=None)
@given(problems)
def test_scores_of_images(problem):
    tokens, _, weight, _ = make(problem)
    n, concepts, _ = tokens.shape
    means, directions = tokens.mean(axis=0), eq.discriminative_directions(weight)
    chosen = tuple(range(0, concepts, 2))
    parts = contributions(tokens, means, directions, chosen)
    logits = partial_logits(tokens, means, directions, chosen)
    for i in range(n):
        for c in range(len(weight)):
            literal = [float((tokens[i, k] - means[k]) @ directions[c, k]) for k in chosen]
            np.testing.assert_allclose(parts[i, c], literal, atol=1e-9)
            assert logits[i, c] == pytest.approx(sum(literal), abs=1e-9)


def test_signed_scalars_point_towards_class_one_and_ignore_constants():
    push = np.array([[1.0, 1.0, 0.5], [-1.0, -1.0, -0.5]])
    scalars = np.array([[2.0, 3.0, 7.0], [0.0, 5.0, 7.0]])
    signs = scalar_signs(scalars, push)
    assert signs.tolist() == [1.0, -1.0, 1.0]
    score = signed_scalar_score(scalars, scalars.mean(axis=0), scalars.std(axis=0), signs)
    assert score.tolist() == [2.0, -2.0]
