"""One folder a class, with or without split folders above the classes."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from d2cp.core.text import utf8
from d2cp.data.assemble import Columns, Options, assemble
from d2cp.data.splits import split_of
from d2cp.data.table import Table
from d2cp.data.walking import LeftOut, folders, image_names
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
    return any(image_names(path, folder, limit=1) for folder in folders(path))


def load(path: Path, options: Options) -> Table:
    by_split = _split_folders(path)
    names: list[str] = []
    y: list[str] = []
    split: list[str] = []
    left = LeftOut()
    empty: list[str] = []
    for top in by_split or [""]:
        left.beside(path / top)
        for label in folders(path / top):
            leaf = os.path.join(top, label)
            found = image_names(path, leaf, left=left)
            if not found:
                empty.append(leaf)
            names += found
            y += [utf8(label)] * len(found)
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
        for name in folders(path)
        if by_split and name not in by_split
    ]
    warnings += [*left.findings(), *_repeated_folders([utf8(name) for name in names], y)]
    return replace(table, warnings=(*table.warnings, *warnings))


def _repeated_folders(names: list[str], y: list[str]) -> list[str]:
    """Classes that hold the same folders, such as 2023/cat and 2024/cat: which level is the
    class?"""
    inner: dict[str, set[str]] = {label: set() for label in y}
    for name, label in zip(names, y, strict=True):
        below = Path(name).parts
        below = below[below.index(label) + 1 : -1]
        if below:
            inner[label].add(below[0])
    shared = set.intersection(*inner.values())
    if not shared or (len(shared) == 1 and not all(label.isdigit() for label in inner)):
        return []  # cats/raw and dogs/raw leave no doubt
    classes, held = (", ".join(map(repr, sorted(group)[:3])) for group in (inner, shared))
    return [
        f"the classes are the upper folders ({classes}), and each holds the same folders "
        f"({held}): if those are the classes, bring them to the top, or name the upper ones "
        "train, val and test"
    ]


def _split_folders(path: Path) -> list[str]:
    """Folders named like splits that hold folders, if `train` is one of them: beside `car` and
    `bus`, a folder `train` full of pictures is a class."""
    named = [
        name
        for name in folders(path)
        if split_of(name) is not None and not name.isdigit() and folders(path / name)
    ]
    return named if any(split_of(name) == 0 for name in named) else []
