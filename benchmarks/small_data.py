"""A folder of embedded digits as PNG files with metadata: real files for fuzz and soak."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from d2cp.core.files import write_csv
from d2cp.data import load_table


def write_digits(folder: Path, count: int = 120, name: str = "cmnist") -> Path:
    """`count` digits, three quarters of them to train on; `site` goes with the class."""
    table = load_table(name)
    rows = []
    (folder / "img").mkdir(parents=True)
    for index, row in enumerate(table.rows("train")[:count].tolist()):
        file = f"img/{index}.png"
        pixels = table.source.pixels(np.array([row]))[0]  # type: ignore[attr-defined]
        Image.fromarray(pixels).save(folder / file)
        split = ("train", "train", "train", "val", "train", "train", "test", "train")[index % 8]
        label = int(table.y[row])
        rows.append((file, split, label, "ab"[label % 2]))
    write_csv(folder / "metadata.csv", ("filename", "split", "y", "site"), rows)
    return folder


def write_answers(digits: Path, path: Path) -> Path:
    """A model's answers to these digits: a class each, which goes by the last digit of the name."""
    lines = (digits / "metadata.csv").read_text(encoding="utf-8").splitlines()[1:]
    names = [line.partition(",")[0] for line in lines]
    classes = sorted({line.split(",")[2] for line in lines})
    answers = [(name, classes[index % len(classes)]) for index, name in enumerate(names)]
    write_csv(path, ("image", "prediction"), answers)
    return path
