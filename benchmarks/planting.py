"""Cues of known strength, planted on photographs or digits: data sets that `d2cp scan` reads.

    python benchmarks/planting.py photos BIRDS OUT --cue mark=0.9 [--cue cast=0.9] [--seed 0]
    python benchmarks/planting.py digits MNIST OUT --cue colour=0.8
    python benchmarks/planting.py folder PHOTOS OUT --cue mark=0.8 --classes cat,dog --val usual

BIRDS is a folder of photographs in Waterbirds' form (metadata.csv with img_filename, y, place);
backgrounds are balanced within each class, unless `background` is the cue. MNIST is a folder of
IDX files; the classes are digits 0-4 and 5-9. PHOTOS is any data set that `d2cp check` reads, a
folder a class or a CSV; `--classes` names two of its classes, or several joined (`shirt,hat+shoe`),
and its splits are dealt anew. `--cue NAME=RHO`: in the train split, the cue is on a
share RHO of class 1 and 1 - RHO of class 0; in val and test on half of each class, so that reading
the cue and reading the class are different things there (`--val usual`: validation images are as
training images are, as a user's mostly would be). Several cues are drawn independently
given the class. metadata.csv gets one column a cue, `cue_NAME`; none is called an attribute.
OUT/masks has a picture of the place of every planted mark, white inside, as `d2cp reproduce gradcam
--masks` reads them.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cues import CUES, Box, Draw, Photo, planted

SHARES = {"train": 0.65, "val": 0.15, "test": 0.20}
LARGEST = 400
"""Longer side of the photographs of a folder, at most."""


def plant_photos(
    birds: Path, out: Path, cues: Mapping[str, float], seed: int = 0, *, classes: str = "y"
) -> None:
    """A balanced subset of the photographs with `cues` planted. `classes` may be "place": then the
    backgrounds are the classes, balanced over the birds."""
    with (birds / "metadata.csv").open(newline="") as file:
        records = list(csv.DictReader(file))
    draw = np.random.default_rng(seed)
    other = "place" if classes == "y" else "y"
    y = np.array([int(r[classes]) for r in records])
    place = np.array([int(r[other]) for r in records])
    rows = draw.permutation(balanced_rows(y, place, draw))
    split = draw_splits(len(rows))
    present: dict[str, NDArray[np.int64]] = {}
    if "background" in cues:
        rows, split = correlated_rows(y, place, cues["background"], draw)
        present["background"] = place[rows]
    present |= draw_cues(y[rows], split, {k: v for k, v in cues.items() if k != "background"}, draw)

    def photo(number: int) -> Photo:
        return Image.open(birds / records[rows[number]]["img_filename"]).convert("RGB")

    write(out, photo, y[rows], split, present, draw)


def plant_digits(
    mnist: Path, out: Path, cues: Mapping[str, float], seed: int = 0, *, n: int = 4000
) -> None:
    """Digits of 28 × 28; `background` tints their ground."""
    from d2cp.data.mnist import load_mnist

    whole = load_mnist(mnist)
    draw = np.random.default_rng(seed)
    rows = draw.permutation(len(whole.train_labels))[:n]
    y = (whole.train_labels[rows] > 4).astype(np.int64)
    split = draw_splits(n)
    present = draw_cues(y, split, cues, draw)

    def digit(number: int) -> Photo:
        return digit_photo(whole.train_images[rows[number]], draw)

    write(out, digit, y, split, present, draw)


def plant_folder(
    photos: Path,
    out: Path,
    cues: Mapping[str, float],
    seed: int = 0,
    *,
    classes: str = "",
    usual_val: bool = False,
) -> None:
    """Photographs of one's own. `classes` are two, by name, each one or several joined by +; where
    there are two only, nothing need be said."""
    from d2cp.data.images import UnreadableError, decode
    from d2cp.data.open_table import load_table
    from d2cp.data.source import EncodedSource

    table = load_table(photos)
    source = table.source
    if not isinstance(source, EncodedSource):
        raise SystemExit(f"{photos} holds no image files")
    label = dict(enumerate(chosen_classes(classes, table.class_names)))
    y = np.array([next((k for k, own in label.items() if c in own), -1) for c in table.y])

    def readable(row: int) -> bool:
        try:
            decode(source.read(row))
        except UnreadableError:
            return False
        return True

    draw = np.random.default_rng(seed)
    there = [row for row in np.flatnonzero(y >= 0).tolist() if readable(row)]
    rows = draw.permutation(np.array(there, dtype=np.int64))
    split = draw_splits(len(rows))
    known = {k: v for k, v in cues.items() if k != "background"}  # a photo's own, unknown here
    if missing := cues.keys() - known.keys():
        raise SystemExit(f"{', '.join(missing)} cannot be planted on photographs of a folder")
    present = draw_cues(y[rows], split, known, draw, usual_val=usual_val)

    def photo(number: int) -> Photo:
        picture = decode(source.read(int(rows[number])))
        picture.thumbnail((LARGEST, LARGEST))
        return picture

    write(out, photo, y[rows], split, present, draw)


def chosen_classes(text: str, names: Sequence[str]) -> list[set[int]]:
    """Numbers of the classes that become class 0 and class 1."""
    parts = [part.split("+") for part in text.split(",")] if text else [[name] for name in names]
    if len(parts) != 2 or any(name not in names for part in parts for name in part):
        raise SystemExit(
            f"--classes must name two, such as {names[0]},{names[-1]}; there are {', '.join(names)}"
        )
    return [{names.index(name) for name in part} for part in parts]


def digit_photo(grey: NDArray[np.uint8], draw: Draw) -> Photo:
    """A digit in light grey on dark grey, with some noise."""
    ink = grey.astype(np.float32)[..., None] / 255
    pixels = 25 + 190 * ink + draw.normal(0, 6, (*grey.shape, 3))
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def write(
    out: Path,
    picture: Callable[[int], Photo],
    y: NDArray[np.int64],
    split: NDArray[np.int64],
    present: Mapping[str, NDArray[np.int64]],
    draw: Draw,
) -> None:
    """Pictures and metadata.csv."""
    (out / "img").mkdir(parents=True, exist_ok=True)
    with (out / "metadata.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["filename", "split", "y", *(f"cue_{name}" for name in present)])
        for number in range(len(y)):
            there = [name for name, values in present.items() if values[number]]
            filename = f"img/{number:05d}.jpg"
            shown = picture(number)
            boxes: list[Box] = []
            (out / filename).write_bytes(planted(shown, there, draw, boxes))
            if boxes:
                write_mask(out / "masks" / f"img/{number:05d}.png", shown.size, boxes)
            values = [int(column[number]) for column in present.values()]
            writer.writerow([filename, int(split[number]), int(y[number]), *values])


def write_mask(path: Path, size: tuple[int, int], boxes: Sequence[Box]) -> None:
    mask = Image.new("L", size)
    for x, y, width, height in boxes:
        mask.paste(255, (x, y, x + width, y + height))
    path.parent.mkdir(parents=True, exist_ok=True)
    mask.save(path)


def balanced_rows(y: NDArray[np.int64], place: NDArray[np.int64], draw: Draw) -> NDArray[np.int64]:
    """As many rows as possible with each background equally frequent in each class."""
    kept = []
    for label in np.unique(y):
        cells = [np.flatnonzero((y == label) & (place == value)) for value in np.unique(place)]
        least = min(len(cell) for cell in cells)
        kept += [draw.permutation(cell)[:least] for cell in cells]
    return np.concatenate(kept)


def correlated_rows(
    y: NDArray[np.int64], place: NDArray[np.int64], rho: float, draw: Draw
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows in which place and class agree on a share `rho` of train, on half of val and test."""
    cells = {
        (c, p): draw.permutation(np.flatnonzero((y == c) & (place == p)))
        for c in (0, 1)
        for p in (0, 1)
    }
    held = min(len(cell) for cell in cells.values()) // 3
    chosen, split = [], []
    for c in (0, 1):
        for part, code in ((slice(0, held // 2), 1), (slice(held // 2, held), 2)):
            for p in (0, 1):
                rows = cells[c, p][part]
                chosen.append(rows)
                split.append(np.full(len(rows), code))
        left = {p: cells[c, p][held:] for p in (0, 1)}
        share = rho if c == 1 else 1 - rho  # of place 1 in this class
        total = min(len(left[1]) / max(share, 1e-9), len(left[0]) / max(1 - share, 1e-9))
        for p, part in ((1, share), (0, 1 - share)):
            rows = left[p][: round(total * part)]
            chosen.append(rows)
            split.append(np.zeros(len(rows), dtype=np.int64))
    rows, codes = np.concatenate(chosen), np.concatenate(split)
    order = draw.permutation(len(rows))
    return rows[order], codes[order]


def draw_splits(n: int) -> NDArray[np.int64]:
    edges = np.cumsum([round(part * n) for part in SHARES.values()])
    return np.searchsorted(edges[:-1], np.arange(n), side="right").astype(np.int64)


def draw_cues(
    y: NDArray[np.int64],
    split: NDArray[np.int64],
    cues: Mapping[str, float],
    draw: Draw,
    *,
    usual_val: bool = False,
) -> dict[str, NDArray[np.int64]]:
    """Which rows have which cue; within a split and class the share is met exactly. With
    `usual_val` it is on as many validation images as training images."""
    present = {}
    for name, rho in cues.items():
        value = np.zeros(len(y), dtype=np.int64)
        for code in range(len(SHARES)):
            for label in (0, 1):
                rows = draw.permutation(np.flatnonzero((split == code) & (y == label)))
                share = 0.5 if code > usual_val else (rho if label else 1 - rho)
                value[rows[: round(share * len(rows))]] = 1
        present[name] = value
    return present


def parse(cues: list[str]) -> dict[str, float]:
    known = (*CUES, "compression")
    found: dict[str, float] = {}
    for text in cues:
        name, _, rho = text.partition("=")
        if name not in known:
            raise SystemExit(f"no cue is called {name!r}; there are {', '.join(known)}")
        found[name] = float(rho)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=("photos", "digits", "folder"))
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--cue", action="append", default=[], metavar="NAME=RHO")
    parser.add_argument("--classes", default="", help="photos: y or place; folder: two, A,B+C")
    parser.add_argument("--val", choices=("balanced", "usual"), default="balanced")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    cues: dict[str, Any] = parse(given.cue)
    usual = given.val == "usual"
    if given.kind == "folder":
        plant_folder(
            given.source, given.out, cues, given.seed, classes=given.classes, usual_val=usual
        )
        return
    if usual or (given.classes and given.classes not in ("y", "place")):
        raise SystemExit("--val usual and classes by name are for a folder of your own")
    if given.kind == "photos":
        plant_photos(given.source, given.out, cues, given.seed, classes=given.classes or "y")
    else:
        plant_digits(given.source, given.out, cues, given.seed)


if __name__ == "__main__":
    main()
