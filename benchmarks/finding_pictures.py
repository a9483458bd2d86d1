"""Do a finding's pictures show what was planted? A mark on photographs, at one share.

    python benchmarks/finding_pictures.py BIRDS --work DIR [--share 0.95] [--seeds 3] [--each 3]

For each seed: on how many marked validation images the heat map's maximum lies inside the mark's
box; of the matched pairs (training images, `--each` a class: the scan's pictures show 3), how many
are of one class and how many differ in the mark. BIRDS and DIR are as for benchmarks/findings.py.
True marks only score.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

from cues import mark_box
from d2cp.data.copies import thumbnail
from d2cp.scan.evidence import certainty
from d2cp.scan.finding import Finding, Scan
from d2cp.scan.heat import heat_maps
from d2cp.scan.pairs import matched_pairs
from findings import Cell, Ints, KnownEyes, Material, cells, load, open_cell, run_cell, score_cue

USUAL = 128
"""Training images whose mean is the usual picture, as in the scan's own pictures."""


def hits(
    material: Material, cell: Cell, found: Scan, finding: Finding, eyes: KnownEyes, rows: Ints
) -> list[bool]:
    """For each row, which carries the mark: is the map's maximum in its box?"""
    usual = eyes.images(np.flatnonzero(cell.split == 0)[:USUAL]).mean(0)
    inside = []
    for start in range(0, len(rows), 32):
        part = rows[start : start + 32]
        images = eyes.images(part)
        maps = heat_maps(found.bank, finding.reader, finding.lens, images, [1] * len(part), usual)
        for row, heat in zip(part, maps, strict=True):
            number = int(cell.picture[row])
            size = material.pictures[number].size
            left, top, width, height = mark_box(size, material.draw(number, ["mark"]))
            y, x = np.unravel_index(int(heat.argmax()), heat.shape)
            inside.append(bool(left <= x < left + width and top <= y < top + height))
    return inside


def pairs_of(
    cell: Cell, finding: Finding, eyes: KnownEyes, rows: Ints, each: int
) -> list[tuple[int, int]]:
    """Matched pairs of the rows, made as those of the scan's pictures."""
    pixels = (eyes.images(rows).permute(0, 2, 3, 1).numpy() * 255).round().astype(np.uint8)
    small = np.stack([thumbnail(Image.fromarray(p)) for p in pixels]).reshape(len(rows), -1)
    sure = certainty(finding.scores[rows], finding.threshold)
    features = small.astype(np.float32) / np.float32(255)
    found = matched_pairs(features, finding.value[rows], cell.y[rows], sure, each)
    return [(int(rows[i]), int(rows[j])) for i, j in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--share", type=float, default=0.95)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--each", type=int, default=3)
    given = parser.parse_args()
    material, y, place = load("photos", given.source, given.work, 0)
    everywhere: list[bool] = []
    same: list[bool] = []
    other: list[bool] = []
    for seed in range(given.first_seed, given.first_seed + given.seeds):
        cell = cells("photos", y, place, {"mark": given.share}, seed)
        found, table = run_cell(material, cell, seed)
        _, eyes = open_cell(material, cell)
        mark = cell.present["mark"]
        finding, _ = score_cue(found, table, mark)
        val = table.rows("val")
        inside = hits(material, cell, found, finding, eyes, val[mark[val] == 1])
        pairs = pairs_of(cell, finding, eyes, table.rows("train"), given.each)
        everywhere += inside
        same += [bool(cell.y[a] == cell.y[b]) for a, b in pairs]
        other += [bool(mark[a] != mark[b]) for a, b in pairs]
        print(
            f"seed {seed}: {finding.name}; maximum inside the mark on {np.mean(inside):.1%} of "
            f"{len(inside)} images; {len(pairs)} pairs, {sum(other[-len(pairs) :])} differ in it",
            flush=True,
        )
    print(
        f"all: maximum inside {np.mean(everywhere):.1%} of {len(everywhere)}; pairs of one class "
        f"{np.mean(same):.1%}, with another value {np.mean(other):.1%} of {len(other)}"
    )


if __name__ == "__main__":
    main()
