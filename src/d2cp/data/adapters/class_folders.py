"""One folder a class, with or without split folders above the classes."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

from d2cp.data.assemble import Columns, Options, assemble
from d2cp.data.images import EXTENSIONS
from d2cp.data.splits import split_of
from d2cp.data.table import Table
from d2cp.errors import DataError

LAYOUT = """\
FOLDER/train/CLASS/*.jpg
       val/CLASS/*.jpg       (or valid, validation)
       test/CLASS/*.jpg
or
FOLDER/CLASS/*.jpg           (a seeded stratified split is drawn)"""


def recognise(path: Path) -> bool:
    if not path.is_dir():
        return False
    return any(image_names(path, folder, limit=1)[0] for folder in _folders(path))


def load(path: Path, options: Options) -> Table:
    folders = _folders(path)
    by_split = _split_folders(path)
    names: list[str] = []
    y: list[str] = []
    split: list[str] = []
    ignored: Counter[str] = Counter()
    empty: list[str] = []
    for top in by_split or [""]:
        for label in _folders(path / top):
            leaf = os.path.join(top, label)
            found, others = image_names(path, leaf)
            ignored += others
            if not found:
                empty.append(leaf)
            names += found
            y += [label] * len(found)
            split += [top] * len(found)
    if len(set(y)) < 2:
        held = f"images only below {y[0]!r}" if y else "no folder with images"
        raise DataError(f"{path} has {held}", expected=f"two classes or more:\n{LAYOUT}")
    root = path.resolve()
    # A folder called "none" or "1.5" is a name here, not a missing or fractional label.
    columns = Columns(
        names=names, y=y, split=split if by_split else None, classes=tuple(sorted(set(y)))
    )
    table = assemble(columns, name=root.name, format="folders", root=root, options=options)
    warnings = [f"class folder {leaf!r} holds no image" for leaf in empty]
    warnings += [
        f"folder {name!r} stands beside the split folders and is not read"
        for name in folders
        if by_split and name not in by_split
    ]
    notes = []
    if ignored:
        listed = ", ".join(f"{n} {suffix or 'without suffix'}" for suffix, n in ignored.items())
        notes.append(f"files that are not images by their suffix were left out: {listed}")
    return replace(table, warnings=(*table.warnings, *warnings), notes=(*table.notes, *notes))


def _split_folders(path: Path) -> list[str]:
    """Folders named like splits that hold folders, if `train` is one of them: beside `car` and
    `bus`, a folder `train` full of pictures is a class."""
    named = [
        name
        for name in _folders(path)
        if split_of(name) is not None and not name.isdigit() and _folders(path / name)
    ]
    return named if any(split_of(name) == 0 for name in named) else []


def image_names(root: Path, leaf: str, limit: int | None = None) -> tuple[list[str], Counter[str]]:
    """Images below root/leaf by suffix, sorted, relative to root; and suffixes left out. Names
    that start with a dot (left by file managers) are not data."""
    found: list[str] = []
    others: Counter[str] = Counter()
    for folder, inner, files in os.walk(root / leaf):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        for name in sorted(files):
            suffix = os.path.splitext(name)[1].lower()
            if name.startswith("."):
                continue
            if suffix not in EXTENSIONS:
                others[suffix] += 1
                continue
            found.append(os.path.relpath(os.path.join(folder, name), root))
            if limit is not None and len(found) >= limit:
                return found, others
    return found, others


def _folders(path: Path) -> list[str]:
    skip = ("__MACOSX", "__pycache__")
    return sorted(
        item.name
        for item in path.iterdir()
        if item.is_dir() and not item.name.startswith(".") and item.name not in skip
    )
