"""Pictures of the first findings, as PNG files with captions in plain words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from d2cp.core.arrays import Bytes
from d2cp.core.rng import permutation
from d2cp.core.text import visible
from d2cp.data.copies import thumbnail
from d2cp.data.store import ImageStore
from d2cp.data.table import Table
from d2cp.disentangle.canvas import Grid, heat_over, save_png
from d2cp.scan.bank import IMAGE_LENSES, REPEATED, read
from d2cp.scan.batched import Doubles, Floats, Ints
from d2cp.scan.changes import WINDOWS
from d2cp.scan.evidence import certainty
from d2cp.scan.finding import Finding, Scan
from d2cp.scan.heat import heat_maps
from d2cp.scan.pairs import matched_pairs
from d2cp.scan.recurring import recurring
from d2cp.scan.shapes import aspect, unstretched
from d2cp.scan.transplants import Shown, try_transplants
from d2cp.scan.workers import each

FINDINGS = 3
CLASSES = 6
"""Rows of a picture at most, the most frequent classes first."""
EACH = 5
CANDIDATES = 3000
"""Training images that pairs are looked for among."""
USUAL = 128
"""Training images whose mean is the usual picture."""
SHOWN = 5
SOURCES = 64
"""Images that windows of a repeated detail are taken from."""
GIVEN = {
    "repeated detail": "the framed window",
    "coloured detail": "the framed window",
    "local pattern": "the framed window",
    "colour": "the overall colour",
    "tint": "the tint",
    "layout": "the surroundings",
    "saturation": "the strength of the colours",
    "sharpness": "the sharpness",
    "border": "the border",
    "texture": "the surroundings",
}
"""What a transplant takes from the donor."""

Kind = tuple[str, str, str, Image.Image]  # kind, title, caption, picture


@dataclass(frozen=True)
class Subject:
    """A finding and the training images that it is shown on."""

    found: Scan
    finding: Finding
    table: Table
    store: ImageStore
    rows: Ints
    small: Floats
    """Thumbnails of `rows`, flattened."""
    seed: int

    @property
    def y(self) -> Ints:
        return self.table.y[self.rows]

    @property
    def value(self) -> Ints:
        return self.finding.value[self.rows]

    @property
    def sure(self) -> Doubles:
        return certainty(self.finding.scores[self.rows], self.finding.threshold)

    @property
    def classes(self) -> list[int]:
        counts = np.bincount(self.y, minlength=self.table.n_classes)
        most = np.argsort(-counts, kind="stable")[:CLASSES]
        return sorted(int(c) for c in most if counts[c])

    def pictures(self, which: Ints) -> list[Bytes]:
        """The images of `rows[which]` in the shape of their files."""
        rows = self.rows[which]
        return [self.shaped(p, int(row)) for p, row in zip(self.store[rows], rows, strict=True)]

    def shaped(self, square: Bytes, row: int) -> Bytes:
        return unstretched(square, aspect(self.table, row))

    def class_name(self, label: int) -> str:
        return visible(self.table.class_names[label])

    def value_name(self, value: int) -> str:
        return visible(self.finding.value_names[value])


def draw_findings(
    found: Scan, table: Table, store: ImageStore, folder: Path, seed: int
) -> list[dict[str, Any]]:
    """Write `pictures/*.png` of the first findings; returns what each shows."""
    train = table.rows("train")
    rows = train[np.sort(permutation(seed, "scan/pictures", 0, len(train))[:CANDIDATES])]
    small = _small(store, rows)
    jobs = [
        (Subject(found, finding, table, store, rows, small, seed), make)
        for finding in found.findings[:FINDINGS]
        for make in (recurs, extremes, heat, pairs, transplants)
    ]

    def draw(job: tuple[Subject, Callable[[Subject], Kind | None]]) -> dict[str, Any] | None:
        subject, make = job
        if (made := make(subject)) is None:
            return None
        kind, title, caption, image = made
        rank = subject.finding.rank
        name = f"pictures/{rank}-{kind}.png"
        save_png(image, folder / name)
        return {"finding": rank, "file": name, "kind": kind, "title": title, "caption": caption}

    return [entry for entry in each(draw, jobs) if entry is not None]


def recurs(subject: Subject) -> Kind | None:
    """The repeated detail by itself."""
    finding = subject.finding
    if finding.lens != REPEATED or REPEATED not in finding.reader.weight:
        return None
    side = int(finding.evidence["transplant"]["towards"])
    members = np.flatnonzero(subject.value == side)
    surest = members[np.argsort(-subject.sure[members], kind="stable")[:SOURCES]]
    if not len(surest):
        return None
    images = read(subject.store, subject.rows[surest])
    found = recurring(subject.found.bank, finding.reader, images, side)
    if not found:
        return None
    lines = [(f"mean of {len(one.windows)}", [one.mean, *one.windows[:EACH]]) for one in found]
    note = (
        "Windows of training images in which the finding's strongest details match best, and their "
        "mean over many images, its contrast raised: what is sharp in the mean is what recurs."
    )
    columns = ["mean", *[""] * EACH]
    image = Grid(f"{_named(finding)}: what recurs", note, columns, lines, 104, (1,)).draw()
    return "recurring", "What recurs", note, image


def extremes(subject: Subject) -> Kind | None:
    """Real images at both ends within each class."""
    finding, two = subject.finding, subject.finding.threshold is not None
    sure = subject.sure
    lines = []
    for label in subject.classes:
        members = np.flatnonzero(subject.y == label)
        # Two classes: by the score. More: from surely another class's value to surely its own.
        sign = np.where(subject.value == label, 1, -1)
        order = finding.score[subject.rows] if two else sure * sign
        ranked = members[np.argsort(order[members], kind="stable")]
        low, high = ranked[:EACH], ranked[-min(EACH, max(0, len(ranked) - EACH)) :]
        if len(ranked) <= EACH:
            high = ranked[:0]
        cells: list[Bytes | None] = [*subject.pictures(low)]
        cells += [None] * (2 * EACH - len(low) - len(high))
        cells += subject.pictures(high)
        lines.append((subject.class_name(label), cells))
    ends = (subject.value_name(0), subject.value_name(1)) if two else ("against it", "with it")
    columns = [ends[0], *[""] * (2 * EACH - 2), ends[1]]
    title = "Real images at both ends"
    note = (
        "Training images of each class. What tells the left half from the right half, in every "
        "class alike, is the finding."
        if two
        else "Training images of each class: those that look like another class to this lens, and "
        "those that look like their own."
    )
    image = Grid(f"{_named(finding)}: both ends", note, columns, lines, 92, (EACH,)).draw()
    return "extremes", title, note, image


def heat(subject: Subject) -> Kind | None:
    """Where the cue is, on the surest image of each value."""
    finding = subject.finding
    if finding.lens not in IMAGE_LENSES:
        return None
    sure = subject.sure
    chosen: list[int] = []
    for v in subject.classes:
        members = np.flatnonzero(subject.value == v)
        chosen += members[np.argsort(-sure[members], kind="stable")[:EACH]].tolist()
    if not chosen:
        return None
    which = np.array(chosen, dtype=np.int64)
    images = read(subject.store, subject.rows[which])
    usual = read(subject.store, subject.rows[:USUAL]).mean(0)
    sides = subject.value[which].tolist()
    maps = heat_maps(subject.found.bank, finding.reader, finding.lens, images, sides, usual)
    pixels = subject.store[subject.rows[which]]

    def shaped(square: Bytes, number: int) -> Bytes:
        return subject.shaped(square, int(subject.rows[which[number]]))

    lines = []
    for v in dict.fromkeys(sides):
        mine = [i for i, side in enumerate(sides) if side == v]
        name = subject.value_name(v)
        warm = {i: heat_over(pixels[i], maps[i]) for i in mine}
        lines.append((name, [shaped(pixels[i], i) for i in mine]))
        lines.append(("where", [shaped(warm[i], i) for i in mine]))
    note = (
        "Training images whose value is surest. Warm places are what pushes the score towards "
        "that value; grey places do nothing for it."
    )
    if len(subject.classes) == 2:
        note += " One value may be no more than the absence of the other: its map then wanders."
    image = Grid(f"{_named(finding)}: where it is", note, [""] * EACH, lines, 104).draw()
    return "heat", "Where it is", note, image


def pairs(subject: Subject) -> Kind | None:
    """Real images of one class, alike but for the finding."""
    finding = subject.finding
    sure = subject.sure
    found = matched_pairs(subject.small, subject.value, subject.y, sure, each=3)
    lines = []
    for label in subject.classes:
        mine = [pair for pair in found if subject.y[pair[0]] == label]
        cells: list[Bytes | None] = []
        for pair in mine:
            cells += subject.pictures(np.array(pair))
        if cells:
            lines.append((subject.class_name(label), cells))
    if not lines:
        return None
    width = max(len(cells) for _, cells in lines)
    columns = ["against it", "with it"] * (width // 2)
    note = (
        "Pairs of real training images of one class, as alike as there are, but for the finding: "
        "the first goes against it, the second with it. What differs in all pairs is the finding."
    )
    image = Grid(
        f"{_named(finding)}: matched pairs", note, columns, lines, 104, range(2, width, 2)
    ).draw()
    return "pairs", "Pairs alike but for the finding", note, image


def transplants(subject: Subject) -> Kind | None:
    """The cue put into other pictures, with the answers before and after."""
    finding = subject.finding
    lens, tried = _best_transplant(subject)
    if not tried:
        return None
    changed = [t for t in tried if t.after != t.before]
    shown = [*changed, *(t for t in tried if t.after == t.before)][:SHOWN]
    lines = [
        (
            f"{subject.value_name(t.before)}, then {subject.value_name(t.after)}"
            if t.after != t.before
            else f"stays {subject.value_name(t.before)}",
            [
                subject.shaped(square, row)
                for square, row in zip(
                    (t.recipient, t.donor, t.result), (*t.rows, t.rows[0]), strict=True
                )
            ],
        )
        for t in shown
    ]
    what = GIVEN[lens]
    note = (
        f"Into an image goes {what} of another one. The lens's answer changed in {len(changed)} of "
        f"{len(tried)} tries; images that changed come first."
    )
    columns = ["image", f"donor of {what}", "together"]
    image = Grid(f"{_named(finding)}: put into other images", note, columns, lines, 132).draw()
    return "transplants", "With this put in, the answer changes", note, image


def _best_transplant(subject: Subject) -> tuple[str, list[Shown]]:
    """By the finding's first lens, or as a window where local patterns are read too and carry the
    answer further."""
    best: tuple[str, list[Shown]] = ("", [])
    for lens in dict.fromkeys((subject.finding.lens, *WINDOWS)):
        if lens not in subject.finding.lenses:
            continue
        tried = try_transplants(
            subject.found,
            subject.finding,
            lens,
            subject.store,
            subject.rows,
            subject.sure,
            subject.seed,
        )
        if not best[1] or _changes(tried) > _changes(best[1]):
            best = lens, tried
    return best


def _changes(tried: list[Shown]) -> int:
    return sum(t.after != t.before for t in tried)


def _named(finding: Finding) -> str:
    return visible(f"{finding.rank}. {finding.name}")


def _small(store: ImageStore, rows: Ints, batch: int = 256) -> Floats:
    """Thumbnails as rows of features."""
    parts = []
    for start in range(0, len(rows), batch):
        pixels = store[rows[start : start + batch]]
        parts.append(np.stack([thumbnail(Image.fromarray(p)) for p in pixels]))
    flat: Floats = np.concatenate(parts).reshape(len(rows), -1).astype(np.float32) / np.float32(255)
    return flat
