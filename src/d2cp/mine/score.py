"""From the mined concepts to one number, or one vector, an image."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from d2cp.core.arrays import Floats


def contributions(
    tokens: Floats, means: Floats, directions: Floats, concepts: Sequence[int]
) -> Floats:
    """⟨E_ik − Ē_k, ΔW_ck⟩ for k in T [N, C, |T|]."""
    chosen = list(concepts)
    gap = tokens[:, chosen] - means[chosen]
    result: Floats = np.einsum("nkd,ckd->nck", gap, directions[:, chosen])
    return result


def partial_logits(
    tokens: Floats, means: Floats, directions: Floats, concepts: Sequence[int]
) -> Floats:
    """u_ic = Σ_{k∈T} ⟨E_ik − Ē_k, ΔW_ck⟩ [N, C]; with two classes column 1 is the paper's score."""
    result: Floats = contributions(tokens, means, directions, concepts).sum(axis=2)
    return result


def scalar_signs(scalars: Floats, contribution: Floats) -> Floats:
    """±1 a concept: the sign that makes its scalar grow with its push towards class 1."""
    centred = scalars - scalars.mean(axis=0)
    sign = np.sign((centred * contribution).sum(axis=0))
    result: Floats = np.where(sign == 0, 1.0, sign)
    return result


def signed_scalar_score(scalars: Floats, means: Floats, stds: Floats, signs: Floats) -> Floats:
    """u_i = Σ_{k∈T} ±z(s_ik); a constant scalar adds nothing."""
    safe = np.where(stds > 0, stds, np.inf)
    result: Floats = ((scalars - means) / safe * signs).sum(axis=1)
    return result
