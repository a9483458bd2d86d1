"""`python -m tools.leaves FOLDER`: write the data set, ready for `d2cp check FOLDER`.

In training a tag lies beside 90% of the magnolia leaves and 10% of the lilac leaves; in validation
and test beside half of each. `a` in metadata.csv says whether there is one; it only scores.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
from PIL import Image

from d2cp.core.rng import numpy_generator
from tools.leaves.leaf import KINDS, leaf
from tools.leaves.tag import add_tag
from tools.leaves.texture import ground

SHARES = {"train": 0.65, "val": 0.15, "test": 0.20}
IMAGES, SIDE, OVERSIZE = 2000, 112, 2


def render(seed: int, number: int, kind: str, tagged: bool, side: int) -> Image.Image:
    """One photograph; it depends on these values alone."""
    draw = numpy_generator(seed, "leaves", number)
    large = side * OVERSIZE
    scene = leaf(draw, ground(draw, large), kind)
    exposure = draw.uniform(0.88, 1.1)
    pixels = (np.clip(scene * exposure, 0, 1) * 255).astype(np.uint8)
    photo = Image.fromarray(pixels)
    if tagged:
        photo = add_tag(draw, photo)
    return photo.resize((side, side), Image.Resampling.LANCZOS)


def write(folder: Path, images: int, agreement: float, side: int, seed: int) -> None:
    draw = numpy_generator(seed, "leaves/plan")
    split = draw.choice(len(SHARES), images, p=list(SHARES.values()))
    y = draw.integers(len(KINDS), size=images)
    follows = draw.random(images) < np.where(split == 0, agreement, 0.5)
    tag = np.where(follows, y, 1 - y)
    folder.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        (folder / kind).mkdir(exist_ok=True)
    with (folder / "metadata.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["filename", "split", "y", "a"])
        for number in range(images):
            kind = KINDS[y[number]]
            name = f"{kind}/{number:05d}.jpg"
            photo = render(seed, number, kind, bool(tag[number]), side)
            photo.save(folder / name, quality=90)
            named = "tag" if tag[number] else "no tag"
            table.writerow([name, list(SHARES)[split[number]], kind, named])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.leaves", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", type=int, default=IMAGES)
    parser.add_argument("--agreement", type=float, default=0.9, help="of kind and tag, in training")
    parser.add_argument("--side", type=int, default=SIDE, help="pixels")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    write(given.folder, given.images, given.agreement, given.side, given.seed)


if __name__ == "__main__":
    main()
