"""MetaShift, cats and dogs indoors and outdoors: the published tree, or its metadata CSV."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePosixPath

import numpy as np

from d2cp.data.adapters import metadata_csv
from d2cp.data.assemble import Columns, Options, assemble, expect
from d2cp.data.delimited import Rows, read_rows
from d2cp.data.table import Table
from d2cp.data.texts import Texts
from d2cp.data.walking import image_names
from d2cp.errors import DataError

PUBLISHED_FOLDER = "MetaShift-Cat-Dog-indoor-outdoor"
METADATA = "metadata_metashift.csv"
LAYOUT = f"""\
[FOLDER/]{METADATA}           filename,y,a,split
or
[FOLDER/]{PUBLISHED_FOLDER}/
    train/cat/cat(indoor)/*.jpg    train/dog/dog(outdoor)/*.jpg
    test/cat/cat(outdoor)/*.jpg    test/dog/dog(indoor)/*.jpg"""
COUNTS = {
    "train": {"0,0": 784, "0,1": 507, "1,0": 196, "1,1": 789},
    "val": {"0,0": 127, "0,1": 75, "1,0": 33, "1,1": 114},
    "test": {"0,0": 273, "0,1": 191, "1,0": 65, "1,1": 345},
}
_LEAVES = {
    "train/cat/cat(indoor)": ("1", "1"),
    "train/dog/dog(outdoor)": ("0", "0"),
    "test/cat/cat(outdoor)": ("1", "0"),
    "test/dog/dog(indoor)": ("0", "1"),
}


def recognise(path: Path) -> bool:
    return _metadata(path) is not None or _tree(path) is not None


def load(path: Path, options: Options) -> Table:
    metadata, tree = _metadata(path), _tree(path)
    if metadata is not None:
        rows = read_rows(metadata)
        if options.images is None:
            rows = _moved_here(rows, options, metadata)
        table = metadata_csv.table_from(metadata, rows, options, "metashift")
    elif tree is not None:
        table = _from_tree(tree, options)
    else:
        raise DataError(f"neither {METADATA} nor the tree in {path}", expected=f"\n{LAYOUT}")
    if table.class_names == ("0", "1") and table.attribute_names == ("0", "1"):
        table = replace(table, class_names=("dog", "cat"), attribute_names=("outdoor", "indoor"))
    return expect(table, "metashift", COUNTS, claimed=True)


def _metadata(path: Path) -> Path | None:
    if path.is_file():
        return path if path.name == METADATA else None
    return path / METADATA if (path / METADATA).is_file() else None


def _moved_here(rows: Rows, options: Options, metadata: Path) -> Rows:
    """The file as SubpopBench writes it names images by their whole path on the machine where it
    was written; what comes after the published folder's name is where they are beside the file."""
    column = metadata_csv.choose_columns(rows.header, options.columns, metadata)["filename"]
    position = rows.header.index(column)
    inside = metadata.resolve().parent.name == PUBLISHED_FOLDER

    def here(name: str) -> str:
        parts = PurePosixPath(name.replace("\\", "/")).parts
        if PUBLISHED_FOLDER not in parts:
            return name
        return str(PurePosixPath(*parts[parts.index(PUBLISHED_FOLDER) + inside :]))

    columns = list(rows.columns)
    columns[position] = Texts(here(name) for name in columns[position])
    return replace(rows, columns=columns)


def _tree(path: Path) -> Path | None:
    for root in (path, path / PUBLISHED_FOLDER):
        if all((root / leaf).is_dir() for leaf in _LEAVES):
            return root
    return None


def _from_tree(root: Path, options: Options) -> Table:
    """The published split pools the four folders, then draws 25% test and 10% validation rows. It
    did so in the order of its own file system: sorted names give equal sizes of all twelve groups,
    as a folder's place among the rows does not hang on the order of its files; other members."""
    names: list[str] = []
    labels: list[tuple[str, str]] = []
    for leaf, label in _LEAVES.items():
        found = image_names(root, leaf)
        names += found
        labels += [label] * len(found)
    legacy = np.random.RandomState(42)
    rows = np.arange(len(names))
    test = legacy.choice(rows, size=int(len(names) * 0.25), replace=False)
    rest = np.setdiff1d(rows, test)
    val = legacy.choice(rest, size=int(len(names) * 0.1), replace=False)
    split = np.zeros(len(names), dtype=np.int64)
    split[test], split[val] = 2, 1
    table = assemble(
        Columns(
            names=names,
            y=[y for y, _ in labels],
            split=[str(code) for code in split],
            a=[a for _, a in labels],
        ),
        name=root.resolve().name,
        format="metashift",
        root=root,
        options=options,
    )
    note = f"split drawn over sorted file names; {METADATA} would give the published one"
    return replace(table, notes=(*table.notes, note))
