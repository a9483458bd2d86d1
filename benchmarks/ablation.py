"""Rows (a) to (f) of the paper's component analysis on frozen features, with paired intervals.

Reads finished runs (their features, mined values and XRM bits: stage 1 is not done again) and
trains every row with every seed on them; true groups score the test images, nothing else.

    python benchmarks/ablation.py RUN [RUN …] [--seeds 5] [--set weight_decay=0.1 …] [--log FILE]

Seed s uses run s modulo their number. With --log, results are kept as lines of JSON: a killed
command goes on, and several processes with --only SEED can share the work.
"""

from __future__ import annotations

import argparse
import csv
import functools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from scipy import stats

from d2cp.config import load_config
from d2cp.config.debias import DebiasConfig
from d2cp.config.strict import build
from d2cp.debias.labels import Labels
from d2cp.debias.train import plain, train_on_features

# the paper's spurious branch: one head that learns beside the class branch
JOINT = {"spurious_fit": "joint", "spurious_heads": 1, "spurious_decay": None}
ROWS: dict[str, dict[str, Any]] = {
    "(a) plain": {},
    "(b) CBCM": {"dual_branch": False, "use_xrm": False},
    "(c) XRM": {"use_pseudo": False, "dual_branch": False},
    "(d) CBCM + XRM": {"dual_branch": False},
    "(e) CBCM + DCD": {"use_xrm": False},
    "(f) all": {},
    "(e) CBCM + DCD, joint": {"use_xrm": False, **JOINT},
    "(f) all, joint": {**JOINT},
}
# Two branches that learn are two passes an image: also with half the steps. A solved one is none.
HALF = ("(e) CBCM + DCD, joint", "(f) all, joint")
PAIRS = [
    ("(b) CBCM", "(e) CBCM + DCD"),
    ("(d) CBCM + XRM", "(f) all"),
    ("(b) CBCM", "(e) CBCM + DCD, joint"),
    ("(d) CBCM + XRM", "(f) all, joint"),
    ("(b) CBCM", "(e) CBCM + DCD, joint, half"),
    ("(d) CBCM + XRM", "(f) all, joint, half"),
    ("(e) CBCM + DCD", "(f) all"),
    ("(b) CBCM", "(d) CBCM + XRM"),
]


def read_columns(run: Path, file: str, name: str) -> np.ndarray:
    """A column of a CSV file of a run, as text."""
    with (run / file).open(newline="") as opened:
        return np.array([line[name] for line in csv.DictReader(opened)])


@functools.cache
def read_run(run: Path) -> tuple[torch.Tensor, Labels, np.ndarray, np.ndarray]:
    """Features, what stage 2 may know, true attributes, and the rows of the test split."""
    column = functools.partial(read_columns, run)
    split = column("data/table.csv", "split")
    number = {name: np.flatnonzero(split == name) for name in np.unique(split)}
    labels = Labels(
        y=column("data/table.csv", "y").astype(np.int64),
        classes=2,
        train=number["train"],
        val=number["val"],
        a=column("mine/pseudo.csv", "pseudo").astype(np.int64),
        y_xrm=column("environments/bits.csv", "y_xrm").astype(np.int64),
        a_xrm=column("environments/bits.csv", "a_xrm").astype(np.int64),
    )
    features = load_file(run / "features" / "features.safetensors")["features"]
    test = number.get("test_balanced", number["test"])
    return features, labels, column("data/table.csv", "a").astype(np.int64), test


def score(run: Path, row: str, config: DebiasConfig, seed: int) -> dict[str, Any]:
    features, labels, a, test = read_run(run)
    trained = train_on_features(features, labels, config, seed=seed, backbone_parameters=1)
    with torch.no_grad():
        answers = trained.classifier()(features[torch.from_numpy(test)]).argmax(1).numpy()
    right, groups = answers == labels.y[test], 2 * labels.y[test] + a[test]
    shares = [float(right[groups == g].mean()) for g in np.unique(groups)]
    found = {"row": row, "seed": seed, "worst": min(shares), "mean": float(np.mean(shares))}
    return {**found, "directions": getattr(trained.model, "directions", 0)}


def settings(row: str, base: DebiasConfig) -> DebiasConfig:
    if row.startswith("(a)"):
        return plain(replace(base, selection="val_worst_class"))
    name = row.removesuffix(", half")
    config = replace(base, **ROWS[name])
    if row == name:
        return config
    return replace(config, epochs=max(1, base.epochs // 2), max_steps=base.max_steps // 2)


def table(found: list[dict[str, Any]]) -> None:
    by_row: dict[str, dict[int, dict[str, float]]] = {}
    for one in found:
        by_row.setdefault(one["row"], {})[one["seed"]] = one
    print("| row | worst group | mean over groups | by seed | directions removed |")
    print("|---|---:|---:|---|---|")
    for row, seeds in by_row.items():
        worst = 100 * np.array([v["worst"] for v in seeds.values()])
        mean = 100 * np.array([v["mean"] for v in seeds.values()])
        spread = f" ± {worst.std(ddof=1):.1f}" if len(worst) > 1 else ""
        each = ", ".join(f"{100 * seeds[s]['worst']:.1f}" for s in sorted(seeds))
        removed = ", ".join(str(seeds[s]["directions"]) for s in sorted(seeds))
        print(f"| {row} | {worst.mean():.1f}{spread} | {mean.mean():.1f} | {each} | {removed} |")
    for before, after in PAIRS:
        shared = sorted(by_row.get(before, {}).keys() & by_row.get(after, {}).keys())
        if len(shared) > 1:
            gap = [by_row[after][s]["worst"] - by_row[before][s]["worst"] for s in shared]
            gain = 100 * np.array(gap)
            error = stats.t.ppf(0.975, len(gain) - 1) * gain.std(ddof=1) / len(gain) ** 0.5
            print(
                f"{before} → {after}: {gain.mean():+.1f} [{gain.mean() - error:+.1f}, "
                f"{gain.mean() + error:+.1f}], {len(gain)} seeds"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", type=int, help="train this seed alone")
    parser.add_argument("--set", action="append", default=[], help="a field of debias, name=value")
    parser.add_argument("--log", type=Path, help="lines of JSON, added to")
    given = parser.parse_args()
    torch.set_num_threads(1)
    base = load_config("photo-cpu").debias
    own = {name: json.loads(value) for name, value in (s.split("=") for s in given.set)}
    base = build(DebiasConfig, {**vars(base), **own}, "debias")
    found = []
    if given.log and given.log.is_file():
        found = [json.loads(line) for line in given.log.read_text().splitlines()]
    done = {(one["row"], one["seed"]) for one in found}
    rows = [*ROWS, *(f"{row}, half" for row in HALF)]
    for seed in range(given.seeds) if given.only is None else [given.only]:
        for row in rows:
            if (row, seed) in done:
                continue
            run = given.runs[seed % len(given.runs)]
            found.append(score(run, row, settings(row, base), seed))
            if given.log:
                with given.log.open("a") as file:
                    file.write(json.dumps(found[-1]) + "\n")
    table(found)


if __name__ == "__main__":
    main()
