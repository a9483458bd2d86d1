"""Gaussian mixtures: one dimension in closed steps, several with BIC picking the number."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np

from d2cp.core import rng
from d2cp.core.arrays import Floats, Ints

EVERY_COUNT = 12


@dataclass(frozen=True)
class TwoGaussians:
    """A two-component fit, low mean first, beside the one-component fit of the same numbers."""

    weights: tuple[float, float]
    means: tuple[float, float]
    stds: tuple[float, float]
    boundary: float
    bic_gain: float
    """BIC of one component minus BIC of two: positive when two describe the scores better."""

    @property
    def ashman_d(self) -> float:
        """√2·|μ1−μ0| / √(σ0²+σ1²): above 2 the two components are cleanly apart."""
        spread = math.hypot(*self.stds)
        return math.sqrt(2) * (self.means[1] - self.means[0]) / spread if spread > 0 else 0.0


def fit_two_gaussians(score: Floats, iterations: int = 200) -> TwoGaussians:
    """Expectation–maximisation from the two halves of the best two-means split. Written out: half
    the time of scikit-learn's general form, of which it is the one-dimensional case."""
    n = len(score)
    spread = float(score.std()) if n else 0.0
    if n < 4 or spread <= 1e-12 * max(1.0, float(np.abs(score).max(initial=0.0))):
        centre = float(score.mean()) if n else 0.0
        return TwoGaussians((1.0, 0.0), (centre, centre), (0.0, 0.0), centre, -math.inf)
    offset = float(score.mean())
    x = (score - offset) / spread
    floor = 1e-6
    side = (x > _two_means(x)).astype(np.float64)
    resp = np.stack([1 - side, side], axis=1)
    likelihood = -math.inf
    for _ in range(iterations):
        mass = np.maximum(resp.sum(axis=0), 1e-12)
        weight = mass / n
        mean = (resp * x[:, None]).sum(axis=0) / mass
        var = np.maximum((resp * (x[:, None] - mean) ** 2).sum(axis=0) / mass, floor)
        log = np.log(weight) - 0.5 * (np.log(2 * np.pi * var) + (x[:, None] - mean) ** 2 / var)
        total = np.logaddexp(log[:, 0], log[:, 1])
        resp = np.exp(log - total[:, None])
        if total.sum() - likelihood < 1e-8 * n:
            likelihood = float(total.sum())
            break
        likelihood = float(total.sum())
    low, high = (0, 1) if mean[0] <= mean[1] else (1, 0)
    single = -0.5 * n * (math.log(2 * math.pi) + 1)
    bic_gain = (-2 * single + 2 * math.log(n)) - (-2 * likelihood + 5 * math.log(n))
    cut = _boundary(weight[[low, high]], mean[[low, high]], var[[low, high]])
    return TwoGaussians(
        (float(weight[low]), float(weight[high])),
        (float(mean[low] * spread + offset), float(mean[high] * spread + offset)),
        (float(math.sqrt(var[low]) * spread), float(math.sqrt(var[high]) * spread)),
        float(cut * spread + offset),
        float(bic_gain),
    )


def _two_means(x: Floats) -> float:
    """The best two-means cut is Otsu's; sorted prefix sums give it exactly. Of cuts that rounding
    alone tells apart, as in symmetric scores, the lowest."""
    ordered = np.sort(x)
    left = np.arange(1, len(x))
    sums = np.cumsum(ordered)[:-1]
    gap = sums / left - (ordered.sum() - sums) / (len(x) - left)
    between = left * (len(x) - left) * gap**2
    best = int(np.argmax(between >= (1 - 1e-9) * between.max()))
    return float(0.5 * (ordered[best] + ordered[best + 1]))


def _boundary(weight: Floats, mean: Floats, var: Floats) -> float:
    """Where the weighted densities cross between the means; their midpoint if they do not."""
    a = 0.5 * (1 / var[0] - 1 / var[1])
    b = mean[1] / var[1] - mean[0] / var[0]
    c = 0.5 * (mean[0] ** 2 / var[0] - mean[1] ** 2 / var[1])
    c += math.log(weight[1] / weight[0]) + 0.5 * math.log(var[0] / var[1])
    roots = [-c / b] if abs(a) < 1e-12 and b != 0 else list(np.roots([a, b, c]))
    inside = [float(np.real(r)) for r in roots if abs(np.imag(r)) < 1e-9]
    inside = [r for r in inside if mean[0] <= r <= mean[1]]
    return inside[0] if inside else float(mean.mean())


@dataclass(frozen=True)
class Clusters:
    """A mixture of Gaussians sharing one spherical spread, in a rotated space.

    One shared spread keeps BIC from spending components on the shape of a single cloud.
    """

    centres: Floats
    weights: Floats
    variance: float
    bic: float

    def assign(self, x: Floats) -> Ints:
        distance = squared_distances(x, self.centres)
        log = np.log(np.maximum(self.weights, 1e-300)) - 0.5 * distance / self.variance
        result: Ints = np.argmax(log, axis=1).astype(np.int64)
        return result


def fit_clusters(x: Floats, start: Floats, iterations: int = 100) -> Clusters:
    """EM of the shared-spread mixture from given centres [A, V]."""
    n, dims = x.shape
    centres, weights = start.astype(np.float64), np.full(len(start), 1 / len(start))
    scale = max(float(x.var(axis=0).sum()) / dims, 1e-300)
    variance, likelihood = scale, -math.inf
    distance = squared_distances(x, centres)
    for _ in range(iterations):
        log = np.log(np.maximum(weights, 1e-300)) - 0.5 * distance / variance
        log -= 0.5 * dims * math.log(2 * math.pi * variance)
        peak = log.max(axis=1, keepdims=True)
        total = peak[:, 0] + np.log(np.exp(log - peak).sum(axis=1))
        gain, likelihood = float(total.sum()) - likelihood, float(total.sum())
        if gain < (1e-7 if len(start) <= EVERY_COUNT else 1e-5) * n:
            break
        resp = np.exp(log - total[:, None])
        mass = np.maximum(resp.sum(axis=0), 1e-9)
        weights, centres = mass / mass.sum(), resp.T @ x / mass[:, None]
        distance = squared_distances(x, centres)
        variance = max(float((resp * distance).sum()) / (n * dims), 1e-6 * scale)
    parameters = len(start) * dims + len(start)
    return Clusters(centres, weights, variance, -2 * likelihood + parameters * math.log(n))


def spread_centres(x: Floats, count: int, seed: int) -> Floats:
    """Centres of k-means, started by k-means++."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    draw = rng.derive(seed, "mine/clusters", count) % 2**32
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct points than centres
        found = KMeans(count, n_init=1, max_iter=25, random_state=draw).fit(x)
    centres: Floats = found.cluster_centers_
    return centres


def squared_distances(x: Floats, centres: Floats) -> Floats:
    """|x_i - c_j|² [N, A]; as a product, since the differences [N, A, V] may not fit in memory."""
    product = x @ centres.T
    product *= -2
    product += (x**2).sum(axis=1)[:, None]
    product += (centres**2).sum(axis=1)
    return np.maximum(product, 0, out=product)


def cluster_counts(limit: int) -> tuple[int, ...]:
    """Numbers of values to try: every one while they are few, then a quarter more each time."""
    counts = list(range(2, min(limit, EVERY_COUNT) + 1))
    while counts[-1] < limit:
        counts.append(min(limit, counts[-1] * 5 // 4))
    return tuple(counts)


def choose_clusters(x: Floats, start: Floats, counts: tuple[int, ...], seed: int) -> Clusters:
    """The mixture with the lowest BIC; with as many clusters as classes, also from `start`, the
    classes' prototypes, so that value c belongs to class c where they win. Where there are many
    numbers to try, those that are left are not once three in a row were worse."""
    best: Clusters | None = None
    worse = 0
    for count in counts:
        if worse >= 3 and count > EVERY_COUNT and count != len(start):
            continue
        worse += 1
        starts = [start] if count == len(start) else []
        starts.append(spread_centres(x, count, seed))
        for centres in starts:
            fitted = fit_clusters(x, centres)
            if best is None or fitted.bic < best.bic - 1e-9 * abs(best.bic):
                best, worse = fitted, 0
    assert best is not None
    return _ordered(best, start)


def _ordered(clusters: Clusters, start: Floats) -> Clusters:
    """Clusters in the order of the class prototypes they lie nearest to."""
    from scipy.optimize import linear_sum_assignment

    distance = ((clusters.centres[:, None] - start[None]) ** 2).sum(axis=2)
    rows, columns = linear_sum_assignment(distance)
    rank = np.full(len(clusters.centres), len(start), dtype=np.int64)
    rank[rows] = columns
    order = np.argsort(rank, kind="stable")
    return Clusters(
        clusters.centres[order], clusters.weights[order], clusters.variance, clusters.bic
    )
