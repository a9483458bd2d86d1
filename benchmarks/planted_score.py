"""Which finding of a scan reads a planted cue, and how well, on each split?

    python benchmarks/planting.py folder PHOTOS PLANTED --cue mark=0.8 --classes cat,dog --val usual
    d2cp scan PLANTED --out RUN
    python benchmarks/planted_score.py PLANTED RUN

For every cue of PLANTED's metadata.csv: the finding whose score has the highest AUROC for it on the
test images, half of which carry it in either class; its rank, verdict and strength, AUROC and
balanced accuracy on train, val and test. Then all findings. True cues only score.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2cp.core.files import read_json
from d2cp.mine.quality import concept_auroc

SPLITS = ("train", "val", "test")
Column = NDArray[np.float64]


def read_cues(planted: Path) -> dict[str, dict[str, int]]:
    """Cue → image → 0 or 1."""
    with (planted / "metadata.csv").open(newline="") as file:
        records = list(csv.DictReader(file))
    names = [name for name in records[0] if name.startswith("cue_")]
    return {n[4:]: {r["filename"]: int(r[n]) for r in records} for n in names}


def read_scores(scan: Path) -> dict[int, dict[str, dict[str, tuple[float, int]]]]:
    """Finding → split → image → score and value."""
    found: dict[int, dict[str, dict[str, tuple[float, int]]]] = {}
    with (scan / "scores.csv").open(newline="") as file:
        for r in csv.DictReader(file):
            part = found.setdefault(int(r["finding"]), {}).setdefault(r["split"], {})
            part[r["image"]] = float(r["score"]), int(r["value"])
    return found


def read_well(scores: Mapping[str, tuple[float, int]], cue: Mapping[str, int]) -> dict[str, float]:
    """AUROC of the score, in the direction in which the value reads the cue, and the value's
    balanced accuracy."""
    there = np.array([cue[image] for image in scores])
    score = np.array([s for s, _ in scores.values()])
    value = np.array([v for _, v in scores.values()])
    area = float(concept_auroc(score[:, None], there)[0])
    balanced = float(np.mean([np.mean(value[there == v] == v) for v in (0, 1)]))
    if score[there == 1].mean() < score[there == 0].mean():
        area = 1 - area
    return {"auroc": area, "balanced": balanced}


def lines(
    cues: Mapping[str, Mapping[str, int]],
    scores: Mapping[int, Mapping[str, Mapping[str, tuple[float, int]]]],
    findings: Sequence[Mapping[str, Any]],
) -> list[str]:
    made = []
    for name, cue in cues.items():
        best = max(scores, key=lambda rank: read_well(scores[rank]["test"], cue)["auroc"])
        finding = next(f for f in findings if f["rank"] == best)
        figures = [(split, read_well(scores[best][split], cue)) for split in SPLITS]
        made.append(
            f"{name}: finding {best}, {finding['outcome']} {finding['strength']:.2f}; "
            + "; ".join(
                f"{split} AUROC {f['auroc']:.3f}, balanced accuracy {f['balanced']:.3f}"
                for split, f in figures
            )
        )
    for f in findings:
        made.append(f"  {f['rank']}. {f['name']}: {f['outcome']} {f['strength']:.2f}")
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("planted", type=Path)
    parser.add_argument("run", type=Path)
    given = parser.parse_args()
    folder = given.run / "scan"
    findings = read_json(folder / "findings.json")["findings"]
    print("\n".join(lines(read_cues(given.planted), read_scores(folder), findings)))


if __name__ == "__main__":
    main()
