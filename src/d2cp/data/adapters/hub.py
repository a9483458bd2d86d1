"""Hugging Face `datasets`: a folder made by save_to_disk, or parquet files. Needs d2cp[hub]."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2cp.data.assemble import Options, finish
from d2cp.data.images import UnreadableError
from d2cp.data.label_values import encode
from d2cp.data.source import Stamp
from d2cp.data.splits import parse_splits, split_of, stratified_split
from d2cp.data.table import SPLIT_NAMES, Table
from d2cp.data.walking import is_run
from d2cp.errors import DataError

LAYOUT = """\
FOLDER/dataset_dict.json, train/, …     made by DatasetDict.save_to_disk
FOLDER/state.json, *.arrow              made by Dataset.save_to_disk
FOLDER/[data/]train-*.parquet, …        or one .parquet file
with a column of images and one of labels"""
_LABELS = ("label", "y", "labels", "class", "target")
_ATTRIBUTES = ("a", "attribute", "place")


@dataclass(frozen=True)
class HubSource:
    """Encoded images inside arrow tables; `part[i]`, `row[i]` say where row i lies."""

    parts: tuple[Any, ...]
    column: str
    part: NDArray[np.int64]
    row: NDArray[np.int64]
    version: int  # changes with the files
    changed: int  # the system's own time of the latest change, which differs from copy to copy
    location: str
    centre_crop: int | None = None

    def __len__(self) -> int:
        return len(self.row)

    def subset(self, indices: NDArray[np.int64]) -> HubSource:
        return replace(self, part=self.part[indices], row=self.row[indices])

    def stamp(self, row: int) -> Stamp:
        return Stamp(f"{self.part[row]}/{self.row[row]}", 0, self.version, self.changed)

    def read(self, row: int) -> bytes:
        cell = self.parts[self.part[row]][int(self.row[row])][self.column]
        data = cell.get("bytes") if isinstance(cell, dict) else None
        if not data:
            # A stored path may point anywhere on the disk: it is not followed.
            raise UnreadableError("no image bytes in the table")
        return bytes(data)

    def identity(self) -> str:
        digest = hashlib.blake2b(f"{self.version}".encode(), digest_size=16)
        digest.update(self.part.astype("<i8").tobytes() + self.row.astype("<i8").tobytes())
        return digest.hexdigest()


def recognise(path: Path) -> bool:
    if path.is_file():
        return path.suffix == ".parquet"
    saved = any((path / name).is_file() for name in ("dataset_dict.json", "state.json"))
    return saved or bool(_parquet_files(path))


def load(path: Path, options: Options) -> Table:
    parts = _open(path)
    names = list(parts)
    datasets = tuple(parts.values())
    features = datasets[0].features
    image = _column(features, options.columns.get("filename"), ("image", "img"), "filename", True)
    label = _column(features, options.columns.get("y"), _LABELS, "y", True)
    attribute = _column(features, options.columns.get("a"), _ATTRIBUTES, "a", False)
    split_column = _column(features, options.columns.get("split"), ("split",), "split", False)
    assert image is not None and label is not None
    sizes = [len(dataset) for dataset in datasets]
    part = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
    row = np.concatenate([np.arange(size, dtype=np.int64) for size in sizes])
    labels = _values(datasets, label)
    keep = np.flatnonzero([not _unlabelled(value, features[label]) for value in labels])
    if not len(keep):
        raise DataError(f"{path}: no row has a label in column {label!r}", expected="classes")
    part, row = part[keep], row[keep]

    def kept(column: str) -> list[str]:
        values = labels if column == label else _values(datasets, column)
        return [values[place] for place in keep]

    y, class_names = encode(kept(label), f"column {label!r}")
    a, attribute_names = None, None
    if attribute is not None:
        a, attribute_names = encode(kept(attribute), f"column {attribute!r}")
    notes: tuple[str, ...] = ()
    warnings = _left_out(labels, keep, sizes, names)
    if split_column is not None:
        split = parse_splits(kept(split_column), f"column {split_column!r}")
    elif all(split_of(name) is not None for name in names) and len(names) > 1:
        codes = np.array([split_of(name) for name in names], dtype=np.int8)
        split = codes[part]
    else:
        split = stratified_split(y, options.seed, options.fractions)
        notes = (
            f"one table without splits: drawn per class (split seed {options.seed}; --seed does "
            "not move images)",
        )
    table = Table(
        name=path.resolve().stem,
        format="hub",
        ids=np.array([f"{names[p]}/{r}" for p, r in zip(part, row, strict=True)]),
        y=y,
        split=split,
        a=a,
        class_names=class_names,
        attribute_names=attribute_names,
        source=_source(datasets, image, part, row, path),
        notes=notes,
        warnings=warnings,
    )
    return finish(_named_classes(table, features[label]), options)


def _open(path: Path) -> dict[str, Any]:
    try:
        import datasets
    except ImportError:
        raise DataError(
            f"{path} needs the package `datasets`, which is not installed",
            remedy='pip install "d2cp[hub]"',
        ) from None
    datasets.disable_progress_bars()
    try:
        if path.is_dir() and not (files := _parquet_files(path)):
            found = datasets.load_from_disk(str(path))
            return dict(found) if isinstance(found, datasets.DatasetDict) else {"all": found}
        files = [path] if path.is_file() else files
        grouped: dict[str, list[str]] = {}
        for file in files:
            prefix = file.stem.split("-")[0].lower()
            name = SPLIT_NAMES[code] if (code := split_of(prefix)) is not None else "all"
            grouped.setdefault(name, []).append(str(file))
        from d2cp.data.cache import default_cache_dir

        cache = str(default_cache_dir() / "hub")
        return {
            name: datasets.Dataset.from_parquet(group, cache_dir=cache)
            for name, group in grouped.items()
        }
    except DataError:
        raise
    except Exception as error:  # arrow, JSON and disk faults, each of its own type
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{path} cannot be opened: {reason}", expected=f"\n{LAYOUT}") from error


def _parquet_files(path: Path) -> list[Path]:
    if not path.is_dir():
        return []
    return sorted(path.glob("*.parquet")) or sorted((path / "data").glob("*.parquet"))


def _column(
    features: Any, asked: str | None, usual: tuple[str, ...], role: str, needed: bool
) -> str | None:
    if asked is not None and asked in features:
        return asked
    found = next((name for name in usual if name in features), None)
    if role == "filename" and asked is None:
        images = [name for name, kind in features.items() if type(kind).__name__ == "Image"]
        found = images[0] if images else found
    if asked is not None or (needed and found is None):
        raise DataError(
            f"no column for {role!r}; the columns are {', '.join(features)}",
            expected=asked or " or ".join(usual),
            remedy=f"name the column: --column {role}=NAME",
        )
    return found


def _unlabelled(value: str, kind: Any) -> bool:
    """Test splits are often published without labels: None, or -1 where the classes have names."""
    return value == "None" or (value == "-1" and bool(getattr(kind, "names", None)))


def _left_out(
    labels: list[str], keep: NDArray[np.int64], sizes: list[int], names: list[str]
) -> tuple[str, ...]:
    """How many rows of each part have no label."""
    lost = np.ones(len(labels), dtype=bool)
    lost[keep] = False
    counts = [int(part.sum()) for part in np.split(lost, np.cumsum(sizes)[:-1])]
    return tuple(
        f"{n} rows of {name!r} have no label and are left out"
        for name, n in zip(names, counts, strict=True)
        if n
    )


def _values(datasets: Sequence[Any], column: str) -> list[str]:
    return [str(value) for dataset in datasets for value in dataset[column]]


def _source(
    datasets: tuple[Any, ...],
    image: str,
    part: NDArray[np.int64],
    row: NDArray[np.int64],
    path: Path,
) -> HubSource:
    from datasets import Image

    files = [path] if path.is_file() else sorted(_own_files(path))
    state = [(os.path.relpath(f, path), f.stat().st_size, f.stat().st_mtime_ns) for f in files]
    changed = max(file.stat().st_ctime_ns for file in files)
    version = int.from_bytes(hashlib.blake2b(repr(state).encode(), digest_size=7).digest(), "big")
    raw = tuple(
        dataset.select_columns([image]).cast_column(image, Image(decode=False))
        for dataset in datasets
    )
    return HubSource(raw, image, part, row, version, changed, str(path.resolve()))


def _own_files(path: Path) -> Iterator[Path]:
    """The data set's files: not those of a run that was put beside them."""
    for folder, inner, files in os.walk(path):
        inner[:] = [name for name in inner if not is_run(Path(folder, name))]
        yield from (Path(folder, name) for name in files)


def _named_classes(table: Table, kind: Any) -> Table:
    """ClassLabel columns hold numbers and know their names."""
    names = getattr(kind, "names", None)
    if not names:
        return table
    return replace(table, class_names=tuple(names[int(code)] for code in table.class_names))
