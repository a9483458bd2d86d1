"""Metadata text as people have it: BOM or not, commas, semicolons, tabs or spaces."""

from __future__ import annotations

import csv
import io
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from d2cp.data.texts import Texts
from d2cp.errors import DataError

MAX_TEXT_BYTES = 512 * 2**20
MAX_CELL = 4096  # longer than any path; an array of names has the width of the longest
PIECE = 2**16  # characters, and the rest of a line


@dataclass(frozen=True)
class Rows:
    """A header and its columns; `lines[i]` is the line on which row i ends."""

    header: list[str]
    columns: list[Sequence[str]]
    lines: Sequence[int]

    def column(self, name: str) -> Sequence[str]:
        return self.columns[self.header.index(name)]


def read_text(path: Path) -> str:
    if not path.is_file():  # a device or a pipe may have no end
        raise DataError(f"{path} is not a file", expected="a metadata file")
    if path.stat().st_size > MAX_TEXT_BYTES:
        raise DataError(f"{path} is larger than {MAX_TEXT_BYTES} bytes", expected="a metadata file")
    return to_text(path.read_bytes(), str(path))


def to_text(data: bytes, what: str) -> str:
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise DataError(
            f"{what} is not {encoding.split('-sig')[0].upper()} text ({error.reason} at byte "
            f"{error.start})",
            remedy="save it as UTF-8",
        ) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise DataError(f"{what} has a NUL character on line {line}", expected="plain text")
    return text


def delimiter_of(header: str) -> str | None:
    """The separator of a header line; None stands for runs of white space."""
    best = max(",;\t", key=header.count)
    return best if best in header else None


def parse(text: str, what: str) -> Rows:
    """Header and rows; a row of another length than the header is an error."""
    header: list[str] = []
    columns: list[Texts] = []
    lines = array("q")
    fault: DataError | None = None  # of the first row that has one; told when the rest was parsed
    try:
        for row, line in _numbered(text):
            if not any(row):
                continue
            if not header:
                header, columns = row, [Texts() for _ in row]
            elif fault is None and (fault := _fault(row, header, what, line)) is None:
                lines.append(line)
                for column, cell in zip(columns, row, strict=True):
                    column.append(cell)
    except csv.Error as error:
        raise DataError(
            f"{what} cannot be parsed: {error}", expected="a table with a header"
        ) from (None)
    if not lines and fault is None:
        raise DataError(
            f"{what} has no rows",
            expected="a header line and one line an image",
            remedy="write it again",
        )
    if len(set(header)) != len(header):
        raise DataError(
            f"{what} names a column twice: {', '.join(header[:40])[:400]}",
            expected="a name for each column",
            remedy="rename one of the two",
        )
    if fault is not None:
        raise fault
    return Rows(header, list(columns), lines)


def _numbered(text: str) -> Iterator[tuple[list[str], int]]:
    """The cells of each row and the line on which it ends."""
    lines = (line for piece in _pieces(text) for line in piece.splitlines())
    delimiter = delimiter_of(next((line for line in lines if line.strip()), ""))
    if delimiter is None:
        lines = (line for piece in _pieces(text) for line in piece.splitlines())
        yield from ((line.split(), number) for number, line in enumerate(lines, start=1))
    else:
        ended = (line for piece in _pieces(text) for line in io.StringIO(piece, newline=""))
        reader = csv.reader(ended, delimiter=delimiter, strict=True)
        for row in reader:
            yield [cell.strip() for cell in row], reader.line_num


def _pieces(text: str) -> Iterator[str]:
    """The text in whole lines, a piece at a time: all of its lines at once are many strings."""
    start = 0
    while start < len(text):
        stop = text.find("\n", start + PIECE) + 1 or len(text)
        yield text[start:stop]
        start = stop


def _fault(row: list[str], header: list[str], what: str, line: int) -> DataError | None:
    if max(map(len, row)) > MAX_CELL:
        longest = next(cell for cell in row if len(cell) > MAX_CELL)
        return DataError(
            f"{what}, line {line}: a field of {len(longest)} characters ({longest[:40]}…)",
            expected=f"at most {MAX_CELL}",
            remedy="look for a quotation mark that is not closed",
        )
    if len(row) != len(header):
        return DataError(
            f"{what}, line {line}: {len(row)} fields",
            expected=f"{len(header)}, as in the header ({', '.join(header[:8])})",
        )
    return None


def read_rows(path: Path) -> Rows:
    return parse(read_text(path), str(path))
