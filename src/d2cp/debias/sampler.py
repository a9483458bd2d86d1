"""The alpha-weighted sampler: w_i = (N / N_g(i))^alpha, draws with replacement."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from d2cp.core.rng import numpy_generator, permutation


def sample_weights(groups: NDArray[np.int64], alpha: float) -> NDArray[np.float64]:
    """w_i = (N / N_g)^alpha: alpha 1 gives groups equal shares, alpha 0 the natural ones."""
    sizes = np.bincount(groups)
    return (len(groups) / sizes[groups].astype(np.float64)) ** alpha


def weighted_order(
    groups: NDArray[np.int64], alpha: float, draws: int, *, seed: int, epoch: int
) -> NDArray[np.int64]:
    """Positions of one epoch: `draws` of them, with replacement, a function of (seed, epoch)."""
    return drawn_order(sample_weights(groups, alpha), draws, seed=seed, epoch=epoch)


def drawn_order(
    weights: NDArray[np.float64], draws: int, *, seed: int, epoch: int
) -> NDArray[np.int64]:
    """The same with weights as they are."""
    generator = numpy_generator(seed, "debias/sampler", epoch)
    return generator.choice(len(weights), size=draws, p=weights / weights.sum())


def natural_order(n: int, draws: int, *, seed: int, epoch: int) -> NDArray[np.int64]:
    """Positions of one epoch in random order, without replacement until all have been seen.

    With fewer draws than images, epochs take successive parts of one permutation.
    """
    first = epoch * draws
    cycles = range(first // n, (first + draws - 1) // n + 1)
    order = np.concatenate([permutation(seed, "debias", cycle, n) for cycle in cycles])
    start = first - cycles[0] * n
    return order[start : start + draws]
