"""Predictions of any model, from a CSV: one line an image, a class or a probability a class."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from d2cp.core.arrays import UNKNOWN, Ints
from d2cp.core.text import repeated, visible
from d2cp.data.delimited import Rows, read_rows
from d2cp.errors import DataError
from d2cp.scan.scanned_rows import ScannedRows

IMAGE_COLUMNS = ("image", "id", "filename", "file", "path")
CLASS_COLUMNS = ("prediction", "predicted", "predicted_class", "pred", "answer", "class", "label")


def read_predictions(path: Path, table: ScannedRows, column: str | None = None) -> Ints:
    """The predicted class of each image of a scan, UNKNOWN where the file has no line.

    A split is covered whole or not at all, so that no figure rests on a choice of images.
    """
    if not path.is_file():
        raise DataError(
            f"{path} is not a file", expected="a CSV of predictions", remedy="check --predictions"
        )
    rows = read_rows(path)
    lower = {name.lower(): name for name in rows.header}
    image = next((lower[n] for n in IMAGE_COLUMNS if n in lower), rows.header[0])
    place = {name: row for row, name in enumerate(table.ids)}
    names = rows.column(image)
    unknown = [n for n in names if n not in place]
    if unknown:
        raise DataError(
            f"{path}: {len(unknown)} of {len(names)} images are not in the data set, such as "
            f"{visible(unknown[0])}",
            expected=f"names as the data set has them, such as {visible(table.ids[0])}",
            remedy=f"write them so in column {image!r}",
        )
    if (twice := repeated(names)) is not None:
        raise DataError(
            f"{path} has two lines for {visible(twice)}",
            expected="one line an image",
            remedy="keep the line that is meant",
        )
    found = np.full(len(table), UNKNOWN, dtype=np.int64)
    found[[place[n] for n in names]] = _classes(rows, image, table, path, column)
    _require_whole_splits(found, table, path)
    return found


def _classes(rows: Rows, image: str, table: ScannedRows, path: Path, column: str | None) -> Ints:
    classes = [str(name) for name in table.class_names]
    if column is None and all(name in rows.header for name in classes):
        return _most_probable(rows, classes, path)
    name = column or _class_column(rows, image, path)
    if name not in rows.header:
        raise DataError(
            f"{path} has no column {name!r}",
            expected=f"one of {', '.join(rows.header[:20])}",
            remedy="check --prediction-column",
        )
    given = rows.column(name)
    code = {label: i for i, label in enumerate(classes)}
    if not all(value in code for value in given):  # then numbers of the classes, from 0
        numbers = {str(i): i for i in range(len(classes))}
        wrong = next((v for v in given if v not in numbers), None)
        if wrong is not None:
            raise DataError(
                f"{path}, column {name!r}: no class is called {visible(wrong)}",
                expected=f"{', '.join(visible(c) for c in classes[:20])}, or their numbers from 0",
                remedy="write the answers so, or name another column: --prediction-column NAME",
            )
        code = numbers
    return np.array([code[value] for value in given], dtype=np.int64)


def _class_column(rows: Rows, image: str, path: Path) -> str:
    lower = {name.lower(): name for name in rows.header}
    known = next((lower[n] for n in CLASS_COLUMNS if n in lower and lower[n] != image), None)
    others = [name for name in rows.header if name != image]
    if known is None and len(others) != 1:
        there = ", ".join(visible(name) for name in others[:20]) or "none beside the images"
        raise DataError(
            f"{path}: which column is the prediction? There are {there}",
            expected="a column called prediction, or one column of probabilities a class",
            remedy=f"name it: --prediction-column {others[-1] if others else 'NAME'}",
        )
    return known or others[0]


def _most_probable(rows: Rows, classes: list[str], path: Path) -> Ints:
    try:
        columns = [[float(cell) for cell in rows.column(name)] for name in classes]
    except ValueError as error:
        raise DataError(
            f"{path}: {error}",
            expected="a number for every class",
            remedy="correct it, or name a column of classes: --prediction-column NAME",
        ) from None
    shares = np.array(columns)
    if not np.isfinite(shares).all():
        image, name = (int(i[0]) for i in np.nonzero(~np.isfinite(shares.T)))
        raise DataError(
            f"{path}, line {rows.lines[image]}: the probability of {visible(classes[name])} is "
            f"{shares[name, image]}",
            expected="a finite number",
            remedy="leave out the images without an answer, with their whole split",
        )
    return np.asarray(shares.argmax(axis=0), dtype=np.int64)


def _require_whole_splits(found: Ints, table: ScannedRows, path: Path) -> None:
    for split in table.split_names:
        rows = table.rows(split)
        missing = rows[found[rows] == UNKNOWN]
        if 0 < len(missing) < len(rows):
            raise DataError(
                f"{path} has no line for {len(missing)} of {len(rows)} images of split "
                f"{split!r}, such as {visible(table.ids[missing[0]])}",
                expected="every image of a split, or none of it",
                remedy="add the lines that are missing, or leave the whole split out",
            )
