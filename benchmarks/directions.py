"""What removing spurious directions does, without the noise of training: converged linear models.

On the frozen features of finished runs, W^a is a logistic regression of the mined value (groups in
equal shares, weight decay `decay`), fitted and removed one direction after another; W^y is one of
the class on what is left (mined groups in equal shares, decay chosen on validation by the worst
mined group). True groups score the test images, nothing else.

    python benchmarks/directions.py RUN [RUN …] [--save FILE]
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

import saved
from ablation import read_run, true_values

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
DECAYS = (0.005, 0.05, 0.5, 5.0)  # of W^a, per image
TARGET_DECAYS = (0.05, 0.15, 0.5, 1.5)  # of W^y, tried on validation
HEADS = (0, 1, 2, 3, 4)


def fit(x: Floats, labels: Ints, groups: Ints, decay: float) -> LogisticRegression:
    counts = np.bincount(groups)
    weights = len(groups) / np.count_nonzero(counts) / counts[groups]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a direction need not be converged to the last digit
        model = LogisticRegression(C=1 / (decay * len(labels)), max_iter=200)
        return model.fit(x, labels, sample_weight=weights)


def worst(right: NDArray[np.bool_], groups: Ints) -> float:
    return float(min(right[groups == g].mean() for g in np.unique(groups)))


def removed(x: Floats, train: Ints, a: Ints, groups: Ints, heads: int, decay: float) -> Floats:
    for _ in range(heads):
        w = fit(x[train], a[train], groups, decay).coef_[0]
        w /= np.linalg.norm(w)
        x = x - np.outer(x @ w, w)
    return x


def score(run: Path, heads: int, decay: float) -> tuple[float, float]:
    """Worst mined group on validation, worst true group on test."""
    features, labels, test = read_run(run)
    true = true_values(run, None, "")
    assert labels.a is not None
    x, y, a = features.double().numpy(), labels.y, labels.a
    x = (x - x[labels.train].mean(0)) / (x[labels.train].std(0) + 1e-6)
    groups = 2 * y + a
    x = removed(x, labels.train, a, groups[labels.train], heads, decay)
    tried = []
    for target in TARGET_DECAYS:
        model = fit(x[labels.train], y[labels.train], groups[labels.train], target)
        right = model.predict(x) == y
        tried.append(
            (
                worst(right[labels.val], groups[labels.val]),
                worst(right[test], 2 * y[test] + true[test]),
            )
        )
    return max(tried)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+")
    saved.option(parser)
    given = parser.parse_args()
    header = [
        "decay of W^a",
        "directions",
        "validation, mined groups",
        "test, true groups",
        "by run",
    ]
    print(f"| {' | '.join(header)} |\n|---:|---:|---:|---:|---|")
    lines = []
    for decay in DECAYS:
        for heads in HEADS:
            if heads == 0 and decay != DECAYS[0]:
                continue
            found = 100 * np.array([score(run, heads, decay) for run in given.runs])
            mean = found.mean(axis=0)
            each = ", ".join(f"{value:.1f}" for value in found[:, 1])
            name = "-" if heads == 0 else f"{decay:g}"
            lines.append([name, str(heads), f"{mean[0]:.1f}", f"{mean[1]:.1f}", each])
            print(f"| {' | '.join(lines[-1])} |", flush=True)
    saved.save(
        given.save,
        seeds=range(len(given.runs)),
        selection="val_pseudo_groups",
        tables={"": saved.table(header, lines)},
    )


if __name__ == "__main__":
    main()
