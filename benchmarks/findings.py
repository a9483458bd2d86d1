"""Can a scan find what was planted? A grid of cues, strengths and seeds that can fail.

    python benchmarks/findings.py photos BIRDS --work DIR [--cues mark,cast] [--seeds 3]
    python benchmarks/findings.py digits MNIST --work DIR [--pairs mark+cast] [--permuted 40]
    … --lines FILE: one JSON line a cell; a cell that is in the file already is not run again
    … --lines FILE --cues= --all: nothing is run, and the summary is of every cell in the file

BIRDS and MNIST are as for benchmarks/planting.py. Every image is made once with and once without
each cue; a cell of the grid is a choice among these, so that all of it is one pass of the lenses a
cue (kept in DIR) and seconds a cell. Printed for each cell, on validation images, half of which
carry the cue in either class:

    rank       of the finding whose score has the highest AUROC for the cue
    AUROC      of that score; `balanced`, balanced accuracy of its pseudo label
    p@10       share of the ten highest scores that carry the cue
    verdict    outcome and strength of that finding, and the strength of finding 1

and at the end the rank correlation of planted share and strength, and false alarms (verdict
"found") at 50% and with labels dealt anew. True cues only score.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from scipy.stats import spearmanr

import d2cp.scan.lenses.coloured as coloured_code
import d2cp.scan.lenses.patches as patch_code
import d2cp.scan.lenses.saturation as saturation_code
import d2cp.scan.lenses.simple as plain_code
import d2cp.scan.lenses.templates as template_code
import d2cp.scan.lenses.tint as tint_code
import d2cp.scan.lenses.windows as window_code
import d2cp.scan.properties as word_code
from cues import HELD_ASIDE
from cues import planted as plant
from d2cp.config.scan import ScanConfig
from d2cp.data.source import Stamp
from d2cp.data.table import Table
from d2cp.mine.quality import concept_auroc
from d2cp.scan.bank import (
    COARSE,
    PATCHES,
    PLAIN,
    REPEATED,
    TEMPLATE_IMAGES,
    Bank,
    bank_of,
    batches,
)
from d2cp.scan.eyes import Features
from d2cp.scan.finding import Finding, Scan
from d2cp.scan.lenses import simple
from d2cp.scan.lenses.templates import to_fine
from d2cp.scan.properties import properties
from d2cp.scan.scanner import scan
from planting import balanced_rows, correlated_rows, digit_photo, draw_cues, draw_splits

SHARES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
CUES = ("colour", "cast", "blur", "mark", "border", "compression", "background")
LOCAL = ("mark", "border", *HELD_ASIDE)  # cues that a dictionary should have met

Ints = NDArray[np.int64]
Look = Callable[[torch.Tensor], dict[str, torch.Tensor]]


@dataclass
class Variant:
    """All pictures with the same cues: files, features and plain properties."""

    files: list[bytes]
    features: Features
    words: Features


class Material:
    """The pictures of a kind, made with any cues and looked at once."""

    def __init__(self, pictures: list[Image.Image], planted: Ints, work: Path, name: str) -> None:
        """`planted` are the pictures that cues are planted on."""
        self.pictures, self.work, self.name = pictures, work, name
        self.planted = np.isin(np.arange(len(pictures)), planted)
        self.variants: dict[tuple[str, ...], Variant] = {}
        self.banks: dict[str, Bank] = {}

    def bank(self, key: str) -> Bank:
        """Learnt from plain pictures, or half with a local cue, as a data set would have them."""
        if key not in self.banks:
            rows = np.flatnonzero(self.planted)
            some = rows[:: max(1, len(rows) // 800)].tolist()
            cues = key.split("+") if key else []
            files = [self.file(i, cues if n % 2 else []) for n, i in enumerate(some)]
            images = torch.stack([_tensor(f) for f in files])
            fine = to_fine(images)[:: max(1, len(images) // TEMPLATE_IMAGES)]
            self.banks[key] = bank_of(simple.shrink(images, COARSE), fine, 200, 0)
        return self.banks[key]

    def file(self, number: int, cues: Sequence[str]) -> bytes:
        return plant(self.pictures[number], cues, self.draw(number, cues))

    def draw(self, number: int, cues: Sequence[str]) -> np.random.Generator:
        """Where and how the cues are on a picture: always the same way."""
        seed = [number, *hashlib.sha256("+".join(cues).encode()).digest()[:4]]
        return np.random.default_rng(seed)

    def variant(self, cues: Sequence[str], key: str) -> Variant:
        """Every picture with `cues`, seen with the bank of `key`."""
        name = (key, *cues)
        if name not in self.variants:
            used = self.planted | (not cues and not key)
            files = [self.file(n, cues) if use else b"" for n, use in enumerate(used)]
            self.variants[name] = Variant(files, *self._features(files, name, key))
        return self.variants[name]

    def _features(
        self, files: list[bytes], name: tuple[str, ...], key: str
    ) -> tuple[Features, Features]:
        """Kept by what they depend on: the slow patches do not when another lens is changed."""

        def through(lenses: Collection[str]) -> Look:
            return lambda images: self.bank(key).features(images, lenses)

        coloured_files = (plain_code, coloured_code, window_code)
        plain_files = (*coloured_files, saturation_code, tint_code)
        patch_files, repeated_files = (patch_code, window_code), (template_code, window_code)
        patches = self._kept(files, name, "patches", patch_files, through(PATCHES))
        repeated = self._kept(files, name, "repeated", repeated_files, through((REPEATED,)))
        plain = self._kept(files, name[1:], "plain", plain_files, through(PLAIN))
        words = self._kept(files, name[1:], "words", (word_code, *coloured_files), properties)
        return repeated | patches | plain, words

    def _kept(
        self,
        files: list[bytes],
        name: tuple[str, ...],
        kind: str,
        code: tuple[ModuleType, ...],
        look: Look,
    ) -> Features:
        text = "".join(Path(str(module.__file__)).read_text() for module in code)
        digest = hashlib.sha256(text.encode() + b"".join(files)).hexdigest()[:16]
        path = (
            self.work / f"{self.name}-{'-'.join(filter(None, name)) or 'none'}-{kind}-{digest}.npz"
        )
        if not path.exists():
            found: dict[str, list[NDArray[Any]]] = {}
            there = [f for f in files if f]
            with torch.no_grad():
                for part in batches(np.arange(len(there)), _tensor(there[0]).shape[-1]):
                    images = torch.stack([_tensor(there[n]) for n in part])
                    for k, v in look(images).items():
                        found.setdefault(k, []).append(v.numpy())
            self.work.mkdir(parents=True, exist_ok=True)
            used = np.array([bool(f) for f in files])
            np.savez(path, **{k: _spread(np.concatenate(v), used) for k, v in found.items()})
        with np.load(path) as arrays:
            return {k: arrays[k] for k in arrays.files}


def _spread(values: NDArray[Any], used: NDArray[np.bool_]) -> NDArray[Any]:
    whole = np.zeros((len(used), *values.shape[1:]), values.dtype)
    whole[used] = values
    return whole


def _opened(file: bytes) -> Image.Image:
    """The picture; a dot where it was not needed."""
    return Image.open(io.BytesIO(file)).convert("RGB") if file else Image.new("RGB", (1, 1))


def _tensor(file: bytes) -> torch.Tensor:
    pixels = np.array(_opened(file))
    return torch.from_numpy(pixels).permute(2, 0, 1).float() / 255


@dataclass(frozen=True)
class Files:
    """Encoded images in memory, as a table's source."""

    files: tuple[bytes, ...]
    centre_crop: int | None = None
    location: str = "planted"

    def __len__(self) -> int:
        return len(self.files)

    def subset(self, indices: Ints) -> Files:
        return replace(self, files=tuple(self.files[i] for i in indices))

    def stamp(self, row: int) -> Stamp:
        return Stamp(str(row), len(self.files[row]), 0)

    def read(self, row: int) -> bytes:
        return self.files[row]

    def identity(self) -> str:
        return "planted"


class KnownEyes:
    """Eyes that have seen every picture already: row → (variant, picture)."""

    def __init__(self, variants: list[Variant], which: Ints, picture: Ints, bank: Bank) -> None:
        self.variants, self.which, self.picture, self.bank = variants, which, picture, bank
        self.size = _tensor(variants[0].files[picture[which == 0][0]]).shape[-1]

    def look(self, rows: Ints, lenses: Collection[str]) -> Features:
        return self._take("features", rows, lenses)

    def describe(self, rows: Ints) -> Features:
        return self._take("words", rows, self.variants[0].words)

    def _take(self, part: str, rows: Ints, wanted: Collection[str]) -> Features:
        first = {k: v for k, v in getattr(self.variants[0], part).items() if k in wanted}
        taken = {k: np.empty((len(rows), *v.shape[1:]), np.float32) for k, v in first.items()}
        for number, variant in enumerate(self.variants):
            mine = self.which[rows] == number
            for k in first:
                taken[k][mine] = getattr(variant, part)[k][self.picture[rows[mine]]]
        return taken

    def images(self, rows: Ints) -> torch.Tensor:
        files = [self.variants[self.which[r]].files[self.picture[r]] for r in rows]
        return torch.stack([_tensor(f) for f in files])


@dataclass(frozen=True)
class Cell:
    """A data set of the grid: which picture is in which row, its class, split and cues."""

    picture: Ints
    y: Ints
    split: Ints
    present: dict[str, Ints]


def run_cell(material: Material, cell: Cell, seed: int) -> tuple[Scan, Table]:
    table, eyes = open_cell(material, cell)
    return scan(table, eyes, table.rows("train"), ScanConfig(seed=seed)), table


def open_cell(material: Material, cell: Cell) -> tuple[Table, KnownEyes]:
    names = [n for n in cell.present if n != "background" or material.name == "digits"]
    key = "+".join(n for n in names if n in LOCAL)
    code = sum(cell.present[n] << i for i, n in enumerate(names)) if names else 0 * cell.y
    used = np.unique(code)
    variants = [material.variant([n for i, n in enumerate(names) if c >> i & 1], key) for c in used]
    which = np.searchsorted(used, code)
    files = tuple(variants[w].files[p] for w, p in zip(which, cell.picture, strict=True))
    table = Table(
        name="planted",
        ids=np.array([str(n) for n in range(len(files))]),
        y=cell.y,
        split=cell.split.astype(np.int8),
        class_names=("0", "1"),
        source=Files(files),
    )
    return table, KnownEyes(variants, which, cell.picture, material.bank(key))


def score_cue(found: Scan, table: Table, cue: Ints) -> tuple[Finding, dict[str, float]]:
    """The finding that reads the cue best on validation, and how well it does."""
    val = table.rows("val")
    auroc = {f.rank: _auroc(f.score[val], cue[val]) for f in found.findings}
    best = max(found.findings, key=lambda f: auroc[f.rank])
    value = best.value[val]
    recall = [float(np.mean(value[cue[val] == v] == v)) for v in (0, 1)]
    top = np.argsort(-best.score[val])[:10]
    return best, {
        "auroc": auroc[best.rank],
        "balanced": float(np.mean(recall)),
        "p@10": float(cue[val][top].mean()),
    }


def _auroc(score: NDArray[np.float64], flag: Ints) -> float:
    area = float(concept_auroc(score[:, None], flag)[0])
    return area if score[flag == 1].mean() >= score[flag == 0].mean() else 1 - area


def cells(kind: str, y: Ints, place: Ints, cues: dict[str, float], seed: int) -> Cell:
    """Pictures dealt to splits, cues to pictures."""
    draw = np.random.default_rng(seed)
    if kind == "photos" and "background" in cues:
        rows, split = correlated_rows(y, place, cues["background"], draw)
        present = {"background": place[rows]}
    else:
        rows = draw.permutation(balanced_rows(y, place, np.random.default_rng(0)))
        split, present = draw_splits(len(rows)), {}
    others = {k: v for k, v in cues.items() if k not in present}
    return Cell(rows, y[rows], split, present | draw_cues(y[rows], split, others, draw))


def load(kind: str, source: Path, work: Path, n: int) -> tuple[Material, Ints, Ints]:
    if kind == "photos":
        with (source / "metadata.csv").open(newline="") as file:
            records = list(csv.DictReader(file))
        pictures = [Image.open(source / r["img_filename"]).convert("RGB") for r in records]
        y, place = (np.array([int(r[k]) for r in records]) for k in ("y", "place"))
        rows = balanced_rows(y, place, np.random.default_rng(0))
        return Material(pictures, rows, work, kind), y, place
    from d2cp.data.mnist import load_mnist

    mnist = load_mnist(source)
    draw = np.random.default_rng(0)
    rows = draw.permutation(len(mnist.train_labels))[:n]
    pictures = [digit_photo(mnist.train_images[r], draw) for r in rows]
    y = (mnist.train_labels[rows] > 4).astype(np.int64)
    return Material(pictures, np.arange(n), work, kind), y, np.zeros_like(y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=("photos", "digits"))
    parser.add_argument("source", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--cues", default=",".join(CUES))
    parser.add_argument("--pairs", default="", help="Pairs at 95%% each, such as mark+cast.")
    parser.add_argument("--shares", default=",".join(map(str, SHARES)))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--permuted", type=int, default=0, help="Runs with labels dealt anew.")
    parser.add_argument("--evidence", action="store_true", help="All findings of each cell.")
    parser.add_argument("--digits", type=int, default=4000)
    parser.add_argument("--lines", type=Path, help="One JSON line a cell; cells in it are kept.")
    parser.add_argument("--all", action="store_true", help="Sum up every cell of --lines.")
    given = parser.parse_args()
    kept = Kept(given.lines)
    lines: list[dict[str, Any]] = []
    sources: list[tuple[Material, Ints, Ints]] = []

    def source() -> tuple[Material, Ints, Ints]:
        """Read when the first cell is not there yet."""
        if not sources:
            sources.append(load(given.kind, given.source, given.work, given.digits))
        return sources[0]

    print(
        f"{'cue':14}{'share':>6}{'seed':>5}{'rank':>5}{'AUROC':>7}{'balanced':>9}{'p@10':>6}"
        "  verdict  strength  first  name"
    )
    for text in (*filter(None, given.cues.split(",")), *filter(None, given.pairs.split(","))):
        names = text.split("+")
        shares = [float(s) for s in given.shares.split(",")] if len(names) == 1 else [0.95]
        for share in shares:
            for seed in range(given.first_seed, given.first_seed + given.seeds):

                def cell_lines(
                    text: str = text, names: list[str] = names, share: float = share, s: int = seed
                ) -> Any:
                    material, y, place = source()
                    cell = cells(given.kind, y, place, dict.fromkeys(names, share), s)
                    found, table = run_cell(material, cell, s)
                    return [_line(text, name, share, s, found, table, cell) for name in names]

                made = kept.get([given.kind, text, share, seed], cell_lines)
                lines += made
                for line in made:
                    _show(line, given.evidence)
        for material, _, _ in sources:
            material.variants = {k: v for k, v in material.variants.items() if k == ("",)}
    alarms = []
    for seed in range(given.permuted):
        key = [given.kind, "permuted", seed]
        alarms.append(kept.get(key, lambda seed=seed: permuted(*source(), given.kind, seed)))
        print(f"labels dealt anew, seed {seed}: {alarms[-1][0]} {alarms[-1][1]:.2f}", flush=True)
    if given.all:
        lines, alarms = kept.of(given.kind)
    _summary(lines, [outcome for outcome, _ in alarms])


class Kept:
    """Results by cell, one JSON line each: what a file has already is not run again."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.known: dict[str, Any] = {}
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                entry = json.loads(line)
                self.known[json.dumps(entry["cell"])] = entry["result"]

    def of(self, kind: str) -> tuple[list[dict[str, Any]], list[Any]]:
        """Every cell's lines, and every verdict on labels dealt anew."""
        mine = [(json.loads(k), made) for k, made in self.known.items() if json.loads(k)[0] == kind]
        lines = [line for cell, made in mine if cell[1] != "permuted" for line in made]
        return lines, [made for cell, made in mine if cell[1] == "permuted"]

    def get(self, cell: list[Any], make: Callable[[], Any]) -> Any:
        key = json.dumps(cell)
        if key not in self.known:
            self.known[key] = make()
            if self.path is not None:
                with self.path.open("a") as file:
                    file.write(json.dumps({"cell": cell, "result": self.known[key]}) + "\n")
        return self.known[key]


def permuted(material: Material, y: Ints, place: Ints, kind: str, seed: int) -> tuple[str, float]:
    cell = cells(kind, y, place, {}, seed)
    dealt = np.random.default_rng(seed + 1000).permutation(cell.y)
    found, _ = run_cell(material, replace(cell, y=dealt), seed)
    return found.outcome, found.findings[0].strength


def _line(
    text: str, name: str, share: float, seed: int, found: Scan, table: Table, cell: Cell
) -> dict[str, Any]:
    best, figures = score_cue(found, table, cell.present[name])
    own = {"rank": best.rank, "outcome": best.outcome, "strength": best.strength}
    first = found.findings[0]
    return {
        **{"cells": text, "cue": name, "share": share, "seed": seed},
        **own,
        **figures,
        **{"name": best.name, "first": first.strength, "verdict": found.outcome},
        "findings": [f.to_dict() for f in found.findings],
    }


def _show(line: dict[str, Any], evidence: bool) -> None:
    print(
        f"{line['cue']:14}{line['share']:6.2f}{line['seed']:5}{line['rank']:5}"
        f"{line['auroc']:7.3f}{line['balanced']:9.3f}{line['p@10']:6.1f}  {line['outcome']:7}"
        f"{line['strength']:9.2f}{line['first']:7.2f}  {line['name']}",
        flush=True,
    )
    for f in line["findings"] if evidence else ():
        e = f["evidence"]
        print(
            f"    {f['rank']} {f['lens']:14} alone {e['alone']:.2f} strength {f['strength']:.2f} "
            f"{f['outcome']:6} p {f['p_value']:.3f} sure and wrong {e['sure_and_wrong']:.2f} "
            f"flips {e['transplant']['flips']:.2f} control {e['transplant']['control']:.2f}",
            flush=True,
        )


def _summary(lines: list[dict[str, Any]], alarms: list[str]) -> None:
    single = [line for line in lines if "+" not in line["cells"]]
    for name in dict.fromkeys(line["cue"] for line in single):
        mine = [line for line in single if line["cue"] == name]
        if len({line["share"] for line in mine}) > 2:
            rho = spearmanr([m["share"] for m in mine], [m["first"] for m in mine]).statistic
            print(f"{name}: rank correlation of share and strength {rho:.3f}")
    if len({line["share"] for line in single}) > 2:
        rho = spearmanr([m["share"] for m in single], [m["first"] for m in single]).statistic
        print(f"all cues: rank correlation of share and strength {rho:.3f}, {len(single)} cells")
    strong = [line for line in single if line["share"] >= 0.8]
    if strong:
        early = np.mean([line["rank"] <= 2 and line["auroc"] > 0.7 for line in strong])
        print(
            f"80% and more: the cue is finding 1 or 2 in {early:.1%} of {len(strong)} cells, "
            f"found in {np.mean([s['outcome'] == 'found' for s in strong]):.1%}"
        )
    half = [line for line in single if line["share"] == 0.5]
    if half:
        found = sum(line["verdict"] == "found" for line in half)
        print(f"false alarms at 50%: {found} of {len(half)}")
    if alarms:
        print(f"false alarms with labels dealt anew: {alarms.count('found')} of {len(alarms)}")


if __name__ == "__main__":
    main()
