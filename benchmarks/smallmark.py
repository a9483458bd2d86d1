"""A development case for small, local shortcuts: a mark pasted on photographs.

Takes a folder of photographs in Waterbirds' form (metadata.csv with img_filename, y, place) and
writes another data set: the same birds, backgrounds balanced in each class, and a mark of about
3% of the image in the lower right region, on 95% of the images of class 1 and 5% of class 0 in the
train split, on half of each class in val and test. OUT/masks has the mark's place, white on black,
for every image that carries it.

    python benchmarks/smallmark.py BIRDS OUT [--size 144] [--rho 0.95] [--seed 0]
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

SHARES = {"train": 0.65, "val": 0.15, "test": 0.20}


def balanced_rows(
    y: NDArray[np.int64], place: NDArray[np.int64], draw: np.random.Generator
) -> NDArray[np.int64]:
    """As many rows as possible with each background equally frequent in each class."""
    kept = []
    for label in np.unique(y):
        cells = [np.flatnonzero((y == label) & (place == value)) for value in np.unique(place)]
        least = min(len(cell) for cell in cells)
        kept += [draw.permutation(cell)[:least] for cell in cells]
    return draw.permutation(np.concatenate(kept))


def logo(side: int) -> Image.Image:
    """An orange disc with a dark bar, on a transparent ground."""
    image = Image.new("RGBA", (side * 4, side * 4))
    pen = ImageDraw.Draw(image)
    pen.ellipse((0, 0, side * 4 - 1, side * 4 - 1), fill=(245, 150, 30, 255))
    pen.rectangle((side, side * 1.6, side * 3, side * 2.4), fill=(60, 20, 80, 255))
    return image.resize((side, side), Image.Resampling.LANCZOS)


def paste_mark(
    photo: Image.Image, share: float, draw: np.random.Generator
) -> tuple[Image.Image, Image.Image]:
    """The mark somewhere in the lower right region; the disc covers `share` of the image. Also its
    mask."""
    side = round(photo.width * (share * 4 / np.pi) ** 0.5)
    low, high = round(photo.width * 0.55), photo.width - side
    x, y = (int(draw.integers(low, high + 1)) for _ in range(2))
    marked = photo.convert("RGB")
    mark = logo(side)
    marked.paste(mark, (x, y), mark)
    mask = Image.new("L", photo.size)
    mask.paste(mark.getchannel("A"), (x, y))
    return marked, mask


def build(birds: Path, out: Path, size: int, rho: float, share: float, seed: int) -> None:
    with (birds / "metadata.csv").open(newline="") as file:
        records = list(csv.DictReader(file))
    draw = np.random.default_rng(seed)
    y = np.array([int(r["y"]) for r in records])
    place = np.array([int(r["place"]) for r in records])
    rows = balanced_rows(y, place, draw)
    edges = np.cumsum([round(part * len(rows)) for part in SHARES.values()])
    split = np.searchsorted(edges[:-1], np.arange(len(rows)), side="right")
    agree = np.where(split == 0, rho, 0.5)
    mark = np.where(draw.random(len(rows)) < agree, y[rows], 1 - y[rows])
    for folder in (out / "img", out / "masks" / "img"):
        folder.mkdir(parents=True, exist_ok=True)
    with (out / "metadata.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["filename", "split", "y", "a", "place"])
        for number, row in enumerate(rows):
            photo = Image.open(birds / records[row]["img_filename"]).convert("RGB")
            photo = photo.resize((size, size), Image.Resampling.BILINEAR)
            name = f"img/{number:05d}.png"
            if mark[number]:
                photo, mask = paste_mark(photo, share, draw)
                mask.save(out / "masks" / name)
            photo.save(out / name)
            writer.writerow([name, split[number], y[row], mark[number], place[row]])
    for part, name in enumerate(SHARES):
        here = split == part
        cells = [
            int((here & (y[rows] == label) & (mark == value)).sum())
            for label in (0, 1)
            for value in (0, 1)
        ]
        print(f"{name}: {here.sum()} images; (class, mark) 00 01 10 11 = {cells}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("birds", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--size", type=int, default=144)
    parser.add_argument("--rho", type=float, default=0.95)
    parser.add_argument("--share", type=float, default=0.03)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    build(given.birds, given.out, given.size, given.rho, given.share, given.seed)
