"""Tables inside a page that a person writes: each stands between marks that name its CSV file.

<!-- results/NAME.csv -->
(the file as a table)
<!-- end -->
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

BLOCK = re.compile(r"<!-- (results/[\w.\-]+\.csv) -->\n.*?<!-- end -->", re.DOTALL)


def filled(text: str, docs: Path) -> str:
    """The page with every block made again from its file."""

    def table(match: re.Match[str]) -> str:
        name = match.group(1)
        return f"<!-- {name} -->\n{markdown(docs / name)}<!-- end -->"

    return BLOCK.sub(table, text)


def markdown(path: Path) -> str:
    """A CSV file as a table; columns of numbers are set to the right."""
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = list(csv.reader(file))
    numbers = [all(_number(row[i]) for row in rows) for i in range(len(header))]
    return lines(header, rows, numbers)


def lines(header: list[str], rows: list[list[str]], right: list[bool]) -> str:
    rule = ["---:" if number else "---" for number in right]
    made = ["| " + " | ".join(header) + " |", "|" + "|".join(rule) + "|"]
    made += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(made) + "\n"


def _number(text: str) -> bool:
    return not text or bool(re.match(r"[+\-−]?[\d.,]+( ±|%|$)", text))
