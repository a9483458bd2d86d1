"""Do no harm: planted sets, and what `d2cp run` ships beside plain training on their true groups.

    python benchmarks/harm.py plant BIRDS OUT [NAME …]     # folders OUT/NAME, see SETS
    d2cp run OUT/NAME --backbone VIT --out RUNS/NAME
    python benchmarks/harm.py score OUT RUNS               # a table; test images, planted cues

BIRDS as in `planting.py`; backgrounds are balanced within each class, train 1,000, validation 300,
the rest tests. Validation has the cue as often as training where a set says `as train`: what a
folder of a user's own looks like. No cue is a column that D2CP reads.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

import saved
from cues import CUES, Draw, Photo
from planting import balanced_rows, correlated_rows, write

Ints = NDArray[np.int64]
TRAIN, VAL = 1000, 300
COLOURS = ((200, 40, 40), (40, 170, 60), (50, 70, 210), (220, 190, 40))


@dataclass(frozen=True)
class Planted:
    """Cues with their share in class 1 (1 - share in class 0)."""

    cues: Mapping[str, float]
    val_as_train: bool = False
    classes: int = 2


SETS = {
    "mark95": Planted({"mark": 0.95}),
    "mark95-usual": Planted({"mark": 0.95}, val_as_train=True),
    "mark80": Planted({"mark": 0.80}),
    "border80-usual": Planted({"border": 0.80}, val_as_train=True),
    "cast95-usual": Planted({"cast": 0.95}, val_as_train=True),
    "colour70": Planted({"colour": 0.70}),
    "background95": Planted({"background": 0.95}),
    "none": Planted({}),
    "two95": Planted({"mark": 0.95, "blur": 0.95}),
    "four90": Planted({"frame": 0.90}, classes=4),
    "stamp90-usual": Planted({"stamp": 0.90}, val_as_train=True),  # kept aside
}


def stamp(photo: Photo, draw: Draw) -> Photo:
    """A date in orange, in the lower right corner, as cameras used to print it."""
    photo = photo.copy()
    text = f"{draw.integers(1, 29):02d} {draw.integers(1, 13):02d} '{draw.integers(90, 100)}"
    at = (round(photo.width * 0.60), round(photo.height * 0.88))
    ImageDraw.Draw(photo).text(at, text, fill=(255, 140, 40))
    return photo


def frame(photo: Photo, colour: int) -> Photo:
    photo = photo.copy()
    pen = ImageDraw.Draw(photo)
    edge = (0, 0, photo.width - 1, photo.height - 1)
    pen.rectangle(edge, None, COLOURS[colour], max(1, round(photo.width * 0.02)))
    return photo


def splits(n: int) -> Ints:
    return np.searchsorted([TRAIN, TRAIN + VAL], np.arange(n), side="right").astype(np.int64)


def shares(y: Ints, split: Ints, planted: Planted, draw: Draw) -> dict[str, Ints]:
    """Which rows have which cue; the share is met exactly in each split and class."""
    present = {}
    for name, rho in planted.cues.items():
        value = np.zeros(len(y), dtype=np.int64)
        for code in range(3):
            natural = code == 0 or (code == 1 and planted.val_as_train)
            for label in range(planted.classes):
                rows = draw.permutation(np.flatnonzero((split == code) & (y == label)))
                if planted.classes == 2:
                    share = 0.5 if not natural else (rho if label else 1 - rho)
                    value[rows[: round(share * len(rows))]] = 1
                    continue
                own = round(len(rows) * (rho if natural else 1 / planted.classes))
                others = [c for c in range(planted.classes) if c != label]
                value[rows] = np.resize(others, len(rows))
                value[rows[:own]] = label
        present[name] = value
    return present


def plant(birds: Path, out: Path, planted: Planted, seed: int = 0) -> None:
    with (birds / "metadata.csv").open(newline="") as file:
        records = list(csv.DictReader(file))
    draw = np.random.default_rng(seed)
    y = np.array([int(r["y"]) for r in records])
    place = np.array([int(r["place"]) for r in records])
    if "background" in planted.cues:
        rows, split = correlated_rows(y, place, planted.cues["background"], draw)
        present, labels = {"background": place[rows]}, y[rows]
    else:
        if planted.classes == 4:
            y = 2 * y + place
            least = np.bincount(y).min()
            cells = [draw.permutation(np.flatnonzero(y == c))[:least] for c in range(4)]
            rows = draw.permutation(np.concatenate(cells))
        else:
            rows = draw.permutation(balanced_rows(y, place, draw))
        labels, split = y[rows], splits(len(rows))
        present = shares(labels, split, planted, draw)

    def picture(number: int) -> Photo:
        photo = Image.open(birds / records[rows[number]]["img_filename"]).convert("RGB")
        if "frame" in present:
            photo = frame(photo, int(present["frame"][number]))
        return photo

    CUES.setdefault("stamp", stamp)
    write(out, picture, labels, split, present, draw)


def accuracies(folder: Path, run: Path) -> dict[str, tuple[float, float, int]]:
    """method -> worst group, mean over groups, images of the least group: planted cues, test."""
    with (folder / "metadata.csv").open(newline="") as file:
        truth = {line["filename"]: line for line in csv.DictReader(file)}
    with (run / "evaluate" / "predictions.csv").open(newline="") as file:
        lines = [line for line in csv.DictReader(file) if line["split"] == "test"]
    groups = []
    for line in lines:
        known = truth[line["id"]]
        cues = [known[name] for name in sorted(known) if name.startswith("cue_")]
        groups.append("/".join([line["y"], *cues]))
    found = {}
    for method in ("erm", "d2cp"):
        right = np.array([line[method] == line["y"] for line in lines])
        each = [right[np.array(groups) == g] for g in sorted(set(groups))]
        means = [float(part.mean()) for part in each]
        found[method] = (min(means), float(np.mean(means)), min(map(len, each)))
    return found


def score(sets: Path, runs: Path, file: Path | None, seed: int) -> None:
    header = ["set", "shipped", "plain: worst", "shipped", "D2CP", "plain: mean", "shipped", "D2CP"]
    print(f"| {' | '.join(header)} |\n|---|---|---:|---:|---:|---:|---:|---:|")
    gains, lines = [], []
    for run in sorted(runs.iterdir()):
        if not (run / "evaluate" / "choice.json").is_file():
            continue
        shipped = json.loads((run / "evaluate" / "choice.json").read_text())["model"]
        found = accuracies(sets / run.name.split("+")[0], run)
        cells = []
        for part in (0, 1):
            cells += [100 * found[m][part] for m in ("erm", shipped, "d2cp")]
        gains.append((cells[1] - cells[0], cells[4] - cells[3]))
        lines.append([run.name, shipped, *(f"{c:.1f}" for c in cells)])
        print(f"| {' | '.join(lines[-1])} |")
    if not gains:
        raise SystemExit(f"no finished run in {runs}")
    worst, mean = np.array(gains).T
    said = {
        "worst": f"{worst.mean():+.1f}",
        "worst least": f"{worst.min():+.1f}",
        "mean": f"{mean.mean():+.1f}",
        "mean least": f"{mean.min():+.1f}",
        "runs": str(len(gains)),
    }
    print(
        f"shipped minus plain: worst group {said['worst']} on average, {said['worst least']} at "
        f"least; mean {said['mean']}, {said['mean least']} at least; {said['runs']} runs"
    )
    saved.save(
        file,
        seeds=[seed],
        selection="D2CP held_out_pseudo_groups, plain training val_worst_class",
        tables={"": saved.table(header, lines)},
        figures=said,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("do", choices=("plant", "score"))
    parser.add_argument("first", type=Path, help="plant: BIRDS; score: the planted sets")
    parser.add_argument("second", type=Path, help="plant: OUT; score: the runs")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seed", type=int, default=0)
    saved.option(parser)
    given = parser.parse_args()
    if given.do == "score":
        return score(given.first, given.second, given.save, given.seed)
    for name in given.names or SETS:
        plant(given.first, given.second / name, SETS[name], given.seed)


if __name__ == "__main__":
    main()
