"""Tables inside a page that a person writes: each stands between marks that name its file.

<!-- results/NAME.csv -->
(the file as a table)
<!-- end -->

On the pages of FILED every table is such a block: one that a person typed is refused.

A file of `d2cp compare` (results/compare/NAME.json) has its split behind its name, one of a
benchmark (results/measured/NAME.json) the table, where it has several. `docs/results.md` is made
otherwise, whole: `tools.results.sections`.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

from tools.results.files import ResultFileError
from tools.results.lines import lines
from tools.results.prose import FENCE, TABLE, number
from tools.results.sections import table

BLOCK = re.compile(
    r"<!-- (results/[\w./\-]+\.(?:csv|json))( [^>]+?)? -->\n.*?<!-- end -->", re.DOTALL
)

FILED = ("performance.md",)


def require_tables_filed(text: str, where: Path) -> None:
    if where.name in FILED and (typed := TABLE.findall(FENCE.sub("", BLOCK.sub("", text)))):
        raise ResultFileError(
            f"{where}: no result file stands behind the table {typed[0]!r}; a table of this page "
            "is a benchmark's (--save), between <!-- results/measured/NAME.json --> and "
            "<!-- end -->"
        )


def filled(text: str, docs: Path) -> str:
    """The page with every block made again from its file."""

    def made(match: re.Match[str]) -> str:
        name, split = match.group(1), match.group(2) or ""
        path = docs / name
        own = markdown(path) if path.suffix == ".csv" else table(path, split.strip())
        return f"<!-- {name}{split} -->\n{own}<!-- end -->"

    return BLOCK.sub(made, text)


def markdown(path: Path) -> str:
    """A CSV file as a table; columns of numbers are set to the right."""
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = list(csv.reader(file))
    numbers = [all(number(row[i]) for row in rows) for i in range(len(header))]
    return lines(header, rows, numbers)
