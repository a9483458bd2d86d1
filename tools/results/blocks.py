"""Tables inside a page that a person writes: each stands between marks that name its file.

<!-- results/NAME.csv -->
(the file as a table)
<!-- end -->

A file of `d2cp compare` (results/compare/NAME.json) has its split behind its name.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

from tools.results.compared import table
from tools.results.lines import lines

BLOCK = re.compile(r"<!-- (results/[\w./\-]+\.(?:csv|json))( \w+)? -->\n.*?<!-- end -->", re.DOTALL)
RULE = re.compile(r"^\|(?: *:?-{3,}:? *\|)+ *$", re.MULTILINE)


def filled(text: str, docs: Path) -> str:
    """The page with every block made again from its file."""

    def made(match: re.Match[str]) -> str:
        name, split = match.group(1), match.group(2) or ""
        own = table(docs / name, split.strip()) if split else markdown(docs / name)
        return f"<!-- {name}{split} -->\n{own}<!-- end -->"

    return BLOCK.sub(made, text)


def bare(text: str) -> list[str]:
    """The headings under which tables of figures stand that no file is named for, one a table."""
    rest = BLOCK.sub("", text)
    found = []
    for match in RULE.finditer(rest):
        before = rest[: match.start()]
        body = rest[match.end() :].split("\n\n")[0]
        if re.search(r"\d\.\d|\d%|\d,\d{3}", body):
            found.append(next(iter(re.findall(r"^#+ (.*)$", before, re.MULTILINE)[::-1]), ""))
    return found


def markdown(path: Path) -> str:
    """A CSV file as a table; columns of numbers are set to the right."""
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = list(csv.reader(file))
    numbers = [all(_number(row[i]) for row in rows) for i in range(len(header))]
    return lines(header, rows, numbers)


def _number(text: str) -> bool:
    return not text or bool(re.match(r"[+\-−]?[\d.,]+( ±|%|$)", text))
