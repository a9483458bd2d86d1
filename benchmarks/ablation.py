"""Rows (a) to (f) of the paper's component analysis on frozen features, with paired intervals.

Reads finished runs (their features, mined values and XRM bits: stage 1 is not done again) and
trains every row with every seed on them; true groups score the test images, nothing else.

    python benchmarks/ablation.py RUN [RUN …] [--seeds 5] [--set class_decay=0.1 …] [--log FILE]
                                  [--truth METADATA.csv --cue NAME] [--save FILE]

Seed s uses run s modulo their number, and a draw of its training images (--share, nine tenths): a
solved head has no other chance in it. True values come from the run's table, or, of a planted set,
from the column `cue_NAME` of its metadata. Settings are those of `photo-cpu`, fixed; with `--set
class_fit='"trained"'` heads and adapters are trained, and the rows of joint branches are there,
too. With --log, results are kept as lines of JSON: a killed command goes on, and several processes
with --only SEED can share the work.
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

import saved
from d2cp.config import load_config
from d2cp.config.debias import DebiasConfig
from d2cp.config.strict import build
from d2cp.core.rng import numpy_generator
from d2cp.debias.labels import Labels
from d2cp.debias.soft_values import value_shares
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
def read_run(run: Path) -> tuple[torch.Tensor, Labels, np.ndarray]:
    """Features, what stage 2 may know, and the rows of the test split."""
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
    return features, labels, test


def true_values(run: Path, truth: Path | None, cue: str) -> np.ndarray:
    if truth is None:
        return read_columns(run, "data/table.csv", "a").astype(np.int64)
    with truth.open(newline="") as file:
        known = {line["filename"]: int(line[f"cue_{cue}"]) for line in csv.DictReader(file)}
    return np.array([known[name] for name in read_columns(run, "data/table.csv", "id")])


def drawn(run: Path, labels: Labels, seed: int, share: float) -> Labels:
    """A share of the training images, with values as sure as a run takes them."""
    scores = read_columns(run, "mine/pseudo.csv", "score").astype(np.float64)
    assert labels.a is not None
    shares = value_shares(scores, labels.a, labels.y, labels.train, labels.val, labels.classes)
    order = numpy_generator(seed, "ablation/images").permutation(labels.train)
    kept = np.sort(order[: round(share * len(order))])
    return replace(labels, train=kept, shares=shares)


def score(
    run: Path, a: np.ndarray, row: str, config: DebiasConfig, seed: int, share: float
) -> dict[str, Any]:
    features, labels, test = read_run(run)
    labels = drawn(run, labels, seed, share)
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


def table(found: list[dict[str, Any]]) -> dict[str, saved.Table]:
    by_row: dict[str, dict[int, dict[str, float]]] = {}
    for one in found:
        by_row.setdefault(one["row"], {})[one["seed"]] = one
    header = ["row", "worst group", "mean over groups", "by seed", "directions removed"]
    print(f"| {' | '.join(header)} |\n|---|---:|---:|---|---|")
    lines, gains = [], []
    for row, seeds in by_row.items():
        worst = 100 * np.array([v["worst"] for v in seeds.values()])
        mean = 100 * np.array([v["mean"] for v in seeds.values()])
        spread = f" ± {worst.std(ddof=1):.1f}" if len(worst) > 1 else ""
        each = ", ".join(f"{100 * seeds[s]['worst']:.1f}" for s in sorted(seeds))
        removed = ", ".join(str(seeds[s]["directions"]) for s in sorted(seeds))
        lines.append([row, f"{worst.mean():.1f}{spread}", f"{mean.mean():.1f}", each, removed])
        print(f"| {' | '.join(lines[-1])} |")
    for before, after in PAIRS:
        shared = sorted(by_row.get(before, {}).keys() & by_row.get(after, {}).keys())
        if len(shared) > 1:
            gap = [by_row[after][s]["worst"] - by_row[before][s]["worst"] for s in shared]
            gain = 100 * np.array(gap)
            error = stats.t.ppf(0.975, len(gain) - 1) * gain.std(ddof=1) / len(gain) ** 0.5
            said = f"{gain.mean():+.1f} [{gain.mean() - error:+.1f}, {gain.mean() + error:+.1f}]"
            gains.append([before, after, said])
            print(f"{before} → {after}: {said}, {len(gain)} seeds")
    paired = saved.table(["from", "to", "worst group, paired [95%]"], gains)
    return {"Rows": saved.table(header, lines), "Differences": paired}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", type=int, help="train this seed alone")
    parser.add_argument("--set", action="append", default=[], help="a field of debias, name=value")
    parser.add_argument("--log", type=Path, help="lines of JSON, added to")
    parser.add_argument("--share", type=float, default=0.9, help="of the training images")
    parser.add_argument("--truth", type=Path)
    parser.add_argument("--cue", default="")
    saved.option(parser)
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
    if base.class_fit == "solved":  # a joint branch beside solved ones shows the training, too
        rows = [row for row in rows if "joint" not in row]
    for seed in range(given.seeds) if given.only is None else [given.only]:
        for row in rows:
            if (row, seed) in done:
                continue
            run = given.runs[seed % len(given.runs)]
            true = true_values(run, given.truth, given.cue)
            found.append(score(run, true, row, settings(row, base), seed, given.share))
            if given.log:
                with given.log.open("a") as file:
                    file.write(json.dumps(found[-1]) + "\n")
    made = table(found)
    saved.save(
        given.save,
        seeds=sorted({one["seed"] for one in found}),
        selection="none: fixed settings" if base.solves_class else "val_pseudo_groups",
        tables=made,
        figures={f"{a} → {b}": gain for a, b, gain in made["Differences"]["rows"]},
        about=f"every seed has its own {100 * given.share:.0f}% of the training images",
    )


if __name__ == "__main__":
    main()
