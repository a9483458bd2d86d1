"""FactorVAE score and DCI: how well single code dimensions match known factors of variation.

Both read a sample: codes [N, K] and integer factors [N, F]. 1 is perfect in every figure.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from d2cp.core import rng
from d2cp.core.arrays import Floats, Ints


def factor_vae_score(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    seed: int,
    votes: int = 800,
    batch: int = 64,
    collapsed: float = 0.05,
) -> float:
    """FactorVAE (Kim & Mnih, 2018): fix one factor, vote for the code that varies least.

    A vote draws `batch` images that share the value of one factor and names the code dimension with
    the least variance relative to its overall variance; the score is the accuracy of the
    majority vote on votes of its own. Dimensions whose spread is below `collapsed` of the largest
    are left out, as dead ones would win every vote.
    """
    z, f = np.asarray(codes, dtype=np.float64), np.asarray(factors, dtype=np.int64)
    spread = z.std(axis=0)
    alive = np.flatnonzero(spread > collapsed * spread.max(initial=0.0))
    if not len(alive):
        return 1.0 / int(f.shape[1])
    z = z[:, alive] / spread[alive]
    groups = [[np.flatnonzero(f[:, j] == v) for v in np.unique(f[:, j])] for j in range(f.shape[1])]
    generator = rng.numpy_generator(seed, "mine/factor-vae")
    table = np.zeros((2, len(alive), f.shape[1]), dtype=np.int64)
    for vote in range(2 * votes):
        factor = int(generator.integers(f.shape[1]))
        members = groups[factor][int(generator.integers(len(groups[factor])))]
        picked = members[generator.integers(len(members), size=batch)]
        winner = int(np.argmin(z[picked].var(axis=0)))
        table[vote % 2, winner, factor] += 1
    majority = table[0].argmax(axis=1)
    right = table[1][np.arange(len(alive)), majority].sum()
    return float(right / table[1].sum())


@dataclass(frozen=True)
class DCI:
    """Eastwood & Williams (2018): disentanglement, completeness, informativeness."""

    disentanglement: float
    completeness: float
    informativeness: float
    importance: Floats
    """How much each code [K] matters for predicting each factor [F]."""


def dci(
    train_codes: ArrayLike,
    train_factors: ArrayLike,
    test_codes: ArrayLike,
    test_factors: ArrayLike,
    *,
    seed: int,
    trees: int = 10,
    depth: int = 10,
) -> DCI:
    """A random forest predicts each factor; its importances give D and C, its accuracy on test
    images gives I."""
    from sklearn.ensemble import RandomForestClassifier

    x, test_x = np.asarray(train_codes), np.asarray(test_codes)
    f, test_f = np.asarray(train_factors), np.asarray(test_factors)
    importance = np.zeros((x.shape[1], f.shape[1]))
    accuracy = []
    for j in range(f.shape[1]):
        state = rng.derive(seed, "mine/dci", j) % 2**32
        forest = RandomForestClassifier(
            trees, max_depth=depth, max_features=None, random_state=state
        )
        forest.fit(x, f[:, j])
        importance[:, j] = forest.feature_importances_
        accuracy.append(float(np.mean(forest.predict(test_x) == test_f[:, j])))
    return DCI(
        disentanglement(importance), completeness(importance), float(np.mean(accuracy)), importance
    )


def disentanglement(importance: Floats) -> float:
    """Σ_k ρ_k·(1 − H_F(P_k)): each code should matter for one factor; ρ_k its share of it all."""
    return _concentration(importance)


def completeness(importance: Floats) -> float:
    """Σ_j ρ_j·(1 − H_K(P_j)): each factor should be told by one code."""
    return _concentration(importance.T)


def _concentration(rows: Floats) -> float:
    """Mean of 1 − entropy of each row, in units of its largest entropy, weighted by row mass."""
    mass = rows.sum(axis=1)
    if mass.sum() <= 0 or rows.shape[1] < 2:
        return 0.0
    p = rows / np.maximum(mass, 1e-300)[:, None]
    entropy = -(p * np.log(np.maximum(p, 1e-300))).sum(axis=1) / np.log(rows.shape[1])
    return float(((1 - entropy) * mass).sum() / mass.sum())


def factor_table(*columns: ArrayLike) -> Ints:
    """Integer factors [N, F] from one column each."""
    result: Ints = np.stack([np.asarray(c, dtype=np.int64) for c in columns], axis=1)
    return result
