"""What the second branch adds as the values it is given get worse: frozen features, five seeds.

    python benchmarks/branch_noise.py RUN [--truth METADATA.csv --cue NAME] [--save FILE]

Reads a finished run's features and mined values. True values come from its table, or, of a planted
set (`harm.py`, `planting.py`), from the column `cue_NAME` of its metadata. Row (b), one branch with
groups in equal shares, and row (e), two branches, W^a solved, train with the settings of
`photo-cpu` on

- the true values, of which a share is exchanged: as many majority images of a class are called
  minority as minority images are called majority, so that this share of every called minority is
  majority, in training and validation;
- the values that the run mined;
- the same, sampled as surely as they are known (`debias.soft_values`, what a run does).

States by the worst called group of validation; the true groups score the test images.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from scipy import stats

import saved
from ablation import read_columns, true_values
from d2cp.config import load_config
from d2cp.debias.labels import Labels
from d2cp.debias.soft_values import value_shares
from d2cp.debias.train import train_on_features, training_weights

Ints = NDArray[np.int64]
SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4)
ROWS = {"one": {"dual_branch": False}, "two": {}}


def exchanged(a: Ints, y: Ints, rows: Ints, share: float, draw: np.random.Generator) -> Ints:
    """`a` with a share of every minority among `rows` exchanged for majority images."""
    found = a.copy()
    for label in np.unique(y[rows]):
        inside = rows[y[rows] == label]
        sides = [draw.permutation(inside[a[inside] == value]) for value in (0, 1)]
        count = round(share * min(map(len, sides)))
        for side in sides:
            found[side[:count]] = 1 - a[side[:count]]
    return found


def worst(right: NDArray[np.bool_], groups: Ints) -> float:
    return 100 * float(min(right[groups == g].mean() for g in np.unique(groups)))


def score(features: torch.Tensor, labels: Labels, true: Ints, test: Ints, seed: int) -> list[float]:
    """Worst true group on test with one branch, with two, and the directions that two remove."""
    base = replace(load_config("photo-cpu").debias, use_xrm=False)
    found = []
    for changes in ROWS.values():
        config = replace(base, **changes)  # type: ignore[arg-type]
        trained = train_on_features(features, labels, config, seed=seed, backbone_parameters=1)
        with torch.no_grad():
            answers = trained.classifier()(features[torch.from_numpy(test)]).argmax(1).numpy()
        found.append(worst(answers == labels.y[test], 2 * labels.y[test] + true[test]))
    return [*found, float(getattr(trained.model, "directions", 0))]


def describe(labels: Labels, true: Ints) -> None:
    """How many of a mined minority are one, and the weight that the sampler gives the true one."""
    assert labels.a is not None
    config, rows = load_config("photo-cpu").debias, labels.train
    hard = training_weights(replace(labels, shares=None), config)
    soft = training_weights(labels, config)
    assert hard is not None and soft is not None
    for label in (0, 1):
        own = labels.y[rows] == label
        usual = int(np.bincount(labels.a[rows][own], minlength=2).argmax())
        called, unusual = own & (labels.a[rows] != usual), own & (true[rows] != usual)
        parts = [f"{100 * w[unusual].sum() / w[own].sum():.0f}%" for w in (hard, soft)]
        print(
            f"class {label}: {called.sum()} training images called unusual, "
            f"{(called & unusual).sum()} of them are; weight of the truly unusual in their class "
            f"{parts[0]}, soft {parts[1]}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--truth", type=Path)
    parser.add_argument("--cue", default="")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    saved.option(parser)
    given = parser.parse_args()
    torch.set_num_threads(1)
    run = given.run
    y = read_columns(run, "data/table.csv", "y").astype(np.int64)
    split = read_columns(run, "data/table.csv", "split")
    mined = read_columns(run, "mine/pseudo.csv", "pseudo").astype(np.int64)
    features = load_file(run / "features" / "features.safetensors")["features"]
    true = true_values(run, given.truth, given.cue)
    train, val, test = (np.flatnonzero(split == name) for name in ("train", "val", "test"))
    points = read_columns(run, "mine/pseudo.csv", "score").astype(np.float64)
    shares = value_shares(points, mined, y, train, val, 2)
    if np.mean(mined[train] == true[train]) < 0.5:  # which value is called 1 is chance
        mined, shares = 1 - mined, None if shares is None else shares[:, ::-1]
    cases: list[tuple[str, float | None]] = [(f"{100 * s:.0f}% exchanged", s) for s in SHARES]
    wrong = [f"{100 * np.mean(mined[rows] != true[rows]):.0f}%" for rows in (train, val)]
    cases.append((f"mined ({wrong[0]} of train, {wrong[1]} of val wrong)", None))
    cases.append(("mined, soft", None))
    describe(Labels(y=y, classes=2, train=train, val=val, a=mined, shares=shares), true)
    header = ["values", "one branch", "two branches", "gain, paired [95%]", "directions"]
    print(f"| {' | '.join(header)} |\n|---|---:|---:|---|---|")
    lines = []
    for name, share in [case for case in cases if given.only in case[0]]:
        rows = []
        for seed in range(given.seeds):
            a = mined
            if share is not None:
                draw = np.random.default_rng(seed)
                a = exchanged(exchanged(true, y, train, share, draw), y, val, share, draw)
            soft = shares if name == "mined, soft" else None
            labels = Labels(y=y, classes=2, train=train, val=val, a=a, shares=soft)
            rows.append(score(features, labels, true, test, seed))
        one, two, removed = np.array(rows).T
        gain = two - one
        error = stats.t.ppf(0.975, len(gain) - 1) * gain.std(ddof=1) / len(gain) ** 0.5
        cells = [
            name,
            f"{one.mean():.1f} ± {one.std(ddof=1):.1f}",
            f"{two.mean():.1f} ± {two.std(ddof=1):.1f}",
            f"{gain.mean():+.1f} [{gain.mean() - error:+.1f}, {gain.mean() + error:+.1f}]",
            ", ".join(f"{r:.0f}" for r in removed),
        ]
        print(f"| {' | '.join(cells)} |", flush=True)
        lines.append(cells)
    saved.save(
        given.save,
        seeds=range(given.seeds),
        selection="val_pseudo_groups",
        tables={"": saved.table(header, lines)},
        figures={
            f"{line[0].split(' (')[0]} {title}": line[k]
            for line in lines
            for k, title in enumerate(("one", "two", "gain", "directions"), 1)
        },
    )


if __name__ == "__main__":
    main()
