"""What every adapter ends with: raw columns → a checked table."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from d2cp.core.text import utf8
from d2cp.data.label_values import encode
from d2cp.data.source import FileSource
from d2cp.data.splits import FRACTIONS, carve_validation, parse_splits, stratified_split
from d2cp.data.table import SPLITS, Counts, Table
from d2cp.data.texts import Texts
from d2cp.errors import DataError

PLAIN = re.compile(r"(?:\w[\w.\- ]*/)*\w[\w.\- ]*")  # a relative path that is normal as it stands
SMALL_CLASS = 10
MANY_CLASSES = 12  # findings about single classes that are told one by one


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to read a data set, beyond its path."""

    columns: Mapping[str, str] = field(default_factory=dict)  # filename, y, split, a → column
    images: Path | None = None  # where the images are, if not beside the metadata
    seed: int = 0
    fractions: tuple[float, float, float] = FRACTIONS
    named: bool = False  # the user named the format


@dataclass(kw_only=True)
class Columns:
    """Raw columns, one entry an image, as an adapter reads them."""

    names: Sequence[str]
    y: Sequence[str]
    split: Sequence[str] | None
    a: Sequence[str] | None = None
    place: Callable[[int], str] = lambda row: f"row {row + 1}"  # where it was read, for messages
    classes: tuple[str, ...] | None = None  # all values of y in order, where y are names for sure


def assemble(
    columns: Columns,
    *,
    name: str,
    format: str,
    root: Path,
    options: Options,
    centre_crop: int | None = None,
) -> Table:
    """A table of files below `root`; paths, labels and splits are checked.

    Names and links may lead anywhere below the folder that the user named with `images`."""
    warnings: list[str] = []
    notes: list[str] = []
    if options.images is not None:
        root = image_root(root, options.images, columns.names)
    names = _safe_names(columns, root)
    keep = _distinct_rows(names, columns, warnings)
    if keep is not None:
        names, columns = names[keep], _only(columns, keep)
    if columns.classes is None:
        y, class_names = encode(columns.y, "label column")
    else:
        class_names = columns.classes
        code = {name: number for number, name in enumerate(class_names)}
        y = np.fromiter((code[name] for name in columns.y), np.int64, len(names))
    a, attribute_names = None, None
    if columns.a is not None:
        a, attribute_names = encode(columns.a, "attribute column")
    if columns.split is None:
        split = stratified_split(y, options.seed, options.fractions)
        notes.append(
            f"no splits given: train/val/test drawn per class (split seed {options.seed}; --seed "
            "does not move images), "
            f"shares {'/'.join(f'{share:g}' for share in options.fractions)}"
        )
    else:
        split = parse_splits(columns.split, "split column")
    table = Table(
        name=utf8(name),
        format=format,
        ids=_ids(names),
        y=y,
        split=split,
        a=a,
        class_names=class_names,
        attribute_names=attribute_names,
        source=_source(root, names, centre_crop, options),
        warnings=tuple(warnings),
        notes=tuple(notes),
    )
    return finish(table, options)


def _ids(names: NDArray[np.str_]) -> NDArray[np.str_]:
    """File names as text that can be written down, each of its own. Most can be as they are, and
    are not held twice."""
    if all(utf8(name) == name for name in names):
        return names
    written = [utf8(name) for name in names]
    if len(set(written)) < len(names):
        written = [f"{name} ({row})" for row, name in enumerate(written)]
    return np.array(written)


def finish(table: Table, options: Options) -> Table:
    """What must hold of every data set: two classes to tell apart, training and validation rows."""
    warnings = list(table.warnings)
    split = table.split
    if table.n_classes < 2:
        raise DataError(
            f"{table.name!r} has one class only: {table.class_names[0]!r}",
            expected="two classes or more",
            remedy="check the label column, or the class folders",
        )
    if not (split == 0).any():
        raise DataError(
            f"{table.name!r} has no training rows",
            expected=f"splits {', '.join(SPLITS)}",
            remedy="mark training rows with 0 or train",
        )
    if not (split == 1).any():
        share = options.fractions[1] / max(options.fractions[0] + options.fractions[1], 1e-9)
        split = carve_validation(table.y, split, options.seed, share or 0.15)
        warnings.append(
            f"no validation split: {int((split == 1).sum())} rows taken from train, per class "
            f"(split seed {options.seed}; --seed does not move images)"
        )
    if not (split == 2).any():
        warnings.append("no test split: nothing can be scored on held-out data")
    warnings += _thin_classes(table, split)
    if _not_contiguous(table.class_names):
        note = f"labels renumbered 0…{table.n_classes - 1}; their own numbers are the class names"
        table = replace(table, notes=(*table.notes, note))
    return replace(table, split=split, warnings=tuple(warnings))


def _thin_classes(table: Table, split: NDArray[np.int8]) -> list[str]:
    """Classes with too few images to learn from, or none to be chosen or scored by."""
    warnings = []
    training = np.bincount(table.y[split == 0], minlength=table.n_classes)
    for label, n in enumerate(training):
        if n < SMALL_CLASS:
            warnings.append(
                f"class {table.class_names[label]!r} has {int(n)} training "
                f"image{'' if n == 1 else 's'}"
            )
    for code, name in ((1, "validation"), (2, "test")):
        held = np.bincount(table.y[split == code], minlength=table.n_classes)
        if held.any():
            warnings += [
                f"class {table.class_names[label]!r} has no {name} images"
                for label in np.flatnonzero(held == 0)
            ]
    if len(warnings) > MANY_CLASSES:
        rest = len(warnings) - MANY_CLASSES
        warnings = [*warnings[:MANY_CLASSES], f"{rest} more such findings about classes"]
    return warnings


def expect(table: Table, published: str, counts: Counts, *, claimed: bool) -> Table:
    """Attach published group counts to a table that is, or claims to be, the published set."""
    found = table.counts()
    equal = all(found.get(split) == cells for split, cells in counts.items())
    total = sum(sum(cells.values()) for cells in counts.values())
    if equal or claimed or len(table) == total:
        name = published if equal else table.name
        return replace(table, name=name, expected_counts=counts)
    note = f"in the form of {published}, but not the published set: {len(table)} rows, not {total}"
    return replace(table, notes=(*table.notes, note))


def _safe_names(columns: Columns, root: Path) -> NDArray[np.str_]:
    """The names as normal paths relative to `root`."""
    widest = 0

    def each() -> Iterator[str]:
        nonlocal widest
        for row, name in enumerate(columns.names):
            if not PLAIN.fullmatch(name):
                name = safe_name(name, columns.place(row), root)
            widest = max(widest, len(name))
            yield name

    given = max(1, max(map(len, columns.names), default=0))  # a normal path is never longer
    names = np.fromiter(each(), f"<U{given}", len(columns.names))
    return names if widest == given else names.astype(f"<U{max(widest, 1)}")


def safe_name(name: str, where: str, root: Path) -> str:
    """A normal path relative to `root`; one that points outside is an error."""
    if PLAIN.fullmatch(name):  # nothing to mend: most names, and a tenth of the time
        return name
    absolute = name.startswith(("/", "\\")) or re.match(r"[A-Za-z]:", name) is not None
    given = name
    if name.startswith("/"):
        for place in (str(root), os.path.realpath(root)):
            if name.startswith(os.path.join(place, "")):
                name, absolute = name[len(os.path.join(place, "")) :], False
                break
    parts = PurePosixPath(name.replace("\\", "/")).parts
    if not parts or absolute or ".." in parts or "\0" in name:
        raise DataError(
            f"{where}: file name {given!r}",
            expected=f"a path inside {root}",
            remedy="name the folder that holds all of these files: --images / takes any path"
            if given.startswith("/")
            else "write paths relative to the folder of the images (without .. or a leading /)",
        )
    return str(PurePosixPath(name))


def image_root(beside: Path, images: Path, names: Sequence[str]) -> Path:
    """Where relative names are looked up when the user named the folder `images`: there; or, as
    before, beside the metadata where that lies inside `images` and `images` has no such file."""
    first = next((name for name in names if not name.startswith("/")), None)
    if first is None or (images / first).exists():
        return images
    inside = os.path.realpath(beside).startswith(os.path.join(os.path.realpath(images), ""))
    return beside if inside else images


def _source(
    root: Path, names: NDArray[np.str_], centre_crop: int | None, options: Options
) -> FileSource:
    source = FileSource(root, names, centre_crop, options.images)
    if folder := source.folder_outside():
        target = os.path.realpath(os.path.join(root, folder))
        raise DataError(
            f"the folder {folder!r} is a link that leaves the data folder: it leads to {target}",
            expected=f"images inside {options.images or root}",
            remedy=f"allow it with --images {os.path.commonpath([os.path.realpath(root), target])}",
        )
    return source


def _distinct_rows(
    names: NDArray[np.str_], columns: Columns, warnings: list[str]
) -> NDArray[np.int64] | None:
    """Rows without exact repetitions, or None where there are none; two rows that disagree about
    one file are an error."""
    # Equal names have equal hashes: a number a row says which names need a closer look.
    hashes = np.fromiter(map(hash, names), np.int64, len(names))
    ordered = np.sort(hashes)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(twice):
        return None
    first: dict[str, int] = {}
    keep = np.ones(len(names), dtype=bool)

    def facts(row: int) -> tuple[str, ...]:
        split = "" if columns.split is None else columns.split[row]
        return columns.y[row], split, "" if columns.a is None else columns.a[row]

    for row in np.flatnonzero(np.isin(hashes, twice)).tolist():
        before = first.setdefault(name := str(names[row]), row)
        keep[row] = before == row
        if before != row and facts(before) != facts(row):
            raise DataError(
                f"{name} is listed twice with different labels or splits "
                f"({columns.place(before)} and {columns.place(row)})",
                expected="one row an image",
                remedy="remove the wrong row",
            )
    if keep.all():
        return None
    warnings.append(f"{int((~keep).sum())} repeated rows, each kept once")
    return np.flatnonzero(keep).astype(np.int64)


def _only(columns: Columns, rows: NDArray[np.int64]) -> Columns:
    """Some of the rows; what was checked before, their names and places, is left behind."""
    kept = np.zeros(len(columns.names), dtype=bool)
    kept[rows] = True

    def part(column: Sequence[str]) -> Texts:
        return Texts(compress(column, kept))

    return replace(
        columns,
        y=part(columns.y),
        split=None if columns.split is None else part(columns.split),
        a=None if columns.a is None else part(columns.a),
    )


def _not_contiguous(class_names: tuple[str, ...]) -> bool:
    numeric = all(re.fullmatch(r"[+-]?\d+", name) for name in class_names)
    return numeric and [int(name) for name in class_names] != list(range(len(class_names)))
