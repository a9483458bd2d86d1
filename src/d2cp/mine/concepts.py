"""CBCM's equations: confidence, high-confidence subset, prototypes, ΔW, bias scores, T."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np

from d2cp.core.arrays import Floats, Ints


def confidence(probability: Floats, y: Ints) -> Floats:
    """p_A(y_i | x_i): the probability A gives to the image's own label."""
    result: Floats = probability[np.arange(len(y)), y]
    return result


def high_confidence_subset(p: Floats, y: Ints, classes: int, rho: float) -> list[Ints]:
    """I_c^hc (Eq. cleaner_subset): the top ρ of each class by p_A; a tie keeps the earlier row.

    A class with images keeps at least one; a class without images keeps none.
    """
    subset: list[Ints] = []
    for c in range(classes):
        members = np.flatnonzero(y == c)
        keep = max(1, math.floor(rho * len(members) + 1e-9)) if len(members) else 0
        order = np.argsort(-p[members], kind="stable")
        subset.append(np.sort(members[order[:keep]]))
    return subset


def prototypes(tokens: Floats, subset: Sequence[Ints]) -> Floats:
    """Ē_{c,k} (Eq. bias_slot_proto) [C, K, D]: mean token over I_c^hc; zeros for an empty class."""
    result = np.zeros((len(subset), *tokens.shape[1:]))
    for c, rows in enumerate(subset):
        if len(rows):
            result[c] = tokens[rows].mean(axis=0)
    return result


def discriminative_directions(weight: Floats) -> Floats:
    """ΔW (Eq. delta_w) for every class [C, K, D]: W_c minus the mean of the other classes.

    With two classes row 1 is the paper's ΔW and row 0 its opposite, which Eq. bias_score's
    absolute value cannot tell apart.
    """
    classes = len(weight)
    others = (weight.sum(axis=0, keepdims=True) - weight) / (classes - 1)
    result: Floats = weight - others
    return result


def bias_scores(protos: Floats, directions: Floats) -> Floats:
    """r_{c,k} = |⟨Ē_{c,k}, ΔW_{c,k}⟩| (Eq. bias_score) [C, K]."""
    result: Floats = np.abs(np.einsum("ckd,ckd->ck", protos, directions))
    return result


def contrast(protos: Floats, directions: Floats) -> Floats:
    """How far apart a concept sets the classes [K]: |⟨Ē_{1k} − Ē_{0k}, ΔW_k⟩| with two classes,
    the mean over classes of |⟨Ē_{ck} − mean of the others, ΔW_{ck}⟩| with more."""
    gaps = discriminative_directions(protos)
    result: Floats = np.abs(np.einsum("ckd,ckd->ck", gaps, directions)).mean(axis=0)
    return result


def top_m(scores: Floats, m: int, exclude: Collection[int] = ()) -> list[tuple[int, ...]]:
    """T_c = Top-M (Eq. topm_concepts), best first; a tie keeps the lower index."""
    allowed = np.array([k for k in range(scores.shape[1]) if k not in exclude], dtype=np.int64)
    result = []
    for row in scores:
        order = allowed[np.argsort(-row[allowed], kind="stable")]
        result.append(tuple(int(k) for k in order[:m]))
    return result


def bias_concept_set(per_class: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """T (Eq. bias_concept_set): T_0 ∩ T_1; with more classes, in T_c of at least half of them."""
    classes = len(per_class)
    needed = 2 if classes == 2 else math.ceil(classes / 2)
    votes: dict[int, int] = {}
    for chosen in per_class:
        for k in chosen:
            votes[k] = votes.get(k, 0) + 1
    return tuple(sorted(k for k, count in votes.items() if count >= needed))


def mined_concepts(
    scores: Floats, m: int, exclude: Collection[int] = ()
) -> tuple[tuple[int, ...], list[tuple[int, ...]], int]:
    """(T, the T_c, M used): M is raised until T is not empty."""
    concepts = scores.shape[1] - len(set(exclude))
    for used in range(min(m, concepts), concepts + 1):
        per_class = top_m(scores, used, exclude)
        chosen = bias_concept_set(per_class)
        if chosen:
            return chosen, per_class, used
    raise AssertionError("every T_c holds every concept at M = K")
