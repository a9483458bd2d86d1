"""A metadata CSV: one row an image, `filename, split, y[, a]`, or other column names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from d2cp.data.assemble import Columns, Options, assemble
from d2cp.data.delimited import Rows, delimiter_of, read_rows
from d2cp.data.table import Table
from d2cp.errors import DataError

LAYOUT = """\
FOLDER/metadata.csv      filename,split,y[,a]   (split: 0/1/2 or train/val/test)
       images, at the paths given in the column `filename`
or the path of any such file"""

NAMES: dict[str, tuple[str, ...]] = {
    "filename": ("filename", "file_name", "img_filename", "image_id", "image", "path", "file"),
    "y": ("y", "label", "class", "target"),
    "split": ("split", "partition"),
    "a": ("a", "attribute", "place"),
}
_SUFFIXES = (".csv", ".tsv", ".txt")


def recognise(path: Path) -> bool:
    return find_metadata(path) is not None


def find_metadata(path: Path) -> Path | None:
    """The file itself; in a folder metadata.csv, or the only table that names images and labels."""
    if path.is_file():
        return path if path.suffix.lower() in _SUFFIXES else None
    if not path.is_dir():
        return None
    if (path / "metadata.csv").is_file():
        return path / "metadata.csv"
    tables = [item for item in sorted(path.iterdir()) if _names_images(item)]
    return tables[0] if len(tables) == 1 else None


def header_of(path: Path) -> set[str]:
    """The column names on the first line, in lower case; no more of the file is read."""
    with path.open("rb") as file:
        first = file.readline(65536).decode("utf-8-sig", "replace")
    return {name.strip().lower() for name in first.split(delimiter_of(first))}


def _names_images(path: Path) -> bool:
    if path.suffix.lower() not in (".csv", ".tsv") or not path.is_file():
        return False
    header = header_of(path)
    return all(header & set(NAMES[role]) for role in ("filename", "y"))


def load(path: Path, options: Options) -> Table:
    metadata = find_metadata(path)
    if metadata is None:
        raise DataError(f"no metadata CSV in {path}", expected=f"\n{LAYOUT}")
    return table_from(metadata, read_rows(metadata), options, "csv")


def table_from(metadata: Path, rows: Rows, options: Options, format: str) -> Table:
    chosen = choose_columns(rows.header, options.columns, metadata)
    columns = Columns(
        names=rows.column(chosen["filename"]),
        y=rows.column(chosen["y"]),
        split=rows.column(chosen["split"]) if "split" in chosen else None,
        a=rows.column(chosen["a"]) if "a" in chosen else None,
        place=lambda row: f"{metadata.name}, line {rows.lines[row]}",
    )
    folder = metadata.parent.resolve()
    name = folder.name if metadata.stem == "metadata" else metadata.stem
    return assemble(columns, name=name, format=format, root=folder, options=options)


def choose_columns(header: list[str], wanted: Mapping[str, str], metadata: Path) -> dict[str, str]:
    """filename, y and, where present, split and a → the file's own column names."""
    if unknown := set(wanted) - set(NAMES):
        raise DataError(
            f"column roles {', '.join(sorted(unknown))}", expected=f"some of {', '.join(NAMES)}"
        )
    lower = {name.lower(): name for name in header}
    chosen = {}
    for role, candidates in NAMES.items():
        asked = wanted.get(role)
        found = next((lower[name] for name in candidates if name in lower), None)
        if asked is not None:
            found = asked if asked in header else lower.get(asked.lower())
        if found is not None:
            chosen[role] = found
        elif asked is not None or role in ("filename", "y"):
            raise DataError(
                f"{metadata} has no column for {role!r}"
                + (f" called {asked!r}" if asked else "")
                + f"; its columns are {', '.join(header[:50])}",
                expected=f"{asked or ' or '.join(candidates)}",
                remedy=f"name the column: --column {role}=NAME",
            )
    return chosen
