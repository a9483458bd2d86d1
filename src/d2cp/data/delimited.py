"""Metadata text as people have it: BOM or not, commas, semicolons, tabs or spaces."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from d2cp.errors import DataError

MAX_TEXT_BYTES = 512 * 2**20
MAX_CELL = 4096  # longer than any path; an array of names has the width of the longest


@dataclass(frozen=True)
class Rows:
    """A header and its rows; `lines[i]` is the line on which row i ends."""

    header: list[str]
    rows: list[list[str]]
    lines: list[int]

    def column(self, name: str) -> list[str]:
        position = self.header.index(name)
        return [row[position] for row in self.rows]


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
    first = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = delimiter_of(first)
    try:
        if delimiter is None:
            numbered = [
                (line.split(), number) for number, line in enumerate(text.splitlines(), start=1)
            ]
        else:
            reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
            numbered = [([cell.strip() for cell in row], reader.line_num) for row in reader]
    except csv.Error as error:
        raise DataError(
            f"{what} cannot be parsed: {error}", expected="a table with a header"
        ) from (None)
    numbered = [(row, line) for row, line in numbered if any(row)]
    if len(numbered) < 2:
        raise DataError(
            f"{what} has no rows",
            expected="a header line and one line an image",
            remedy="write it again",
        )
    header = numbered[0][0]
    if len(set(header)) != len(header):
        raise DataError(
            f"{what} names a column twice: {', '.join(header[:40])[:400]}",
            expected="a name for each column",
            remedy="rename one of the two",
        )
    for row, line in numbered[1:]:
        if longest := next((cell for cell in row if len(cell) > MAX_CELL), ""):
            raise DataError(
                f"{what}, line {line}: a field of {len(longest)} characters ({longest[:40]}…)",
                expected=f"at most {MAX_CELL}",
                remedy="look for a quotation mark that is not closed",
            )
        if len(row) != len(header):
            raise DataError(
                f"{what}, line {line}: {len(row)} fields",
                expected=f"{len(header)}, as in the header ({', '.join(header[:8])})",
            )
    return Rows(header, [row for row, _ in numbered[1:]], [line for _, line in numbered[1:]])


def read_rows(path: Path) -> Rows:
    return parse(read_text(path), str(path))
