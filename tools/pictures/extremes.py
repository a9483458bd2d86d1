"""Real images at both ends of a scan's first finding, from its scores."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from PIL import Image

from d2cp.core.run_directory import RunDirectory
from tools.pictures.rows import Line, Pixels

EACH = 4


def extremes_lines(run: RunDirectory, data: Path, finding: int = 1) -> list[Line]:
    """A line a class: the lowest scores on the left, the highest on the right."""
    with (run.artifact("scan") / "scores.csv").open(newline="", encoding="utf-8") as file:
        rows = [r for r in csv.DictReader(file) if r["finding"] == str(finding)]
    train = sorted(
        (r for r in rows if r["split"] == "train"), key=lambda r: (float(r["score"]), r["image"])
    )
    lines = []
    for name in sorted({r["class"] for r in train}):
        files = [data / r["image"] for r in train if r["class"] == name]
        shown = [_pixels(path) for path in (*files[:EACH], *files[-EACH:])]
        lines.append(Line(f"{name}, lowest scores", shown, right="highest scores"))
    return lines


def _pixels(path: Path) -> Pixels:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"), dtype=np.uint8)
