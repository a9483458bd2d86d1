"""The table of faults in docs/reliability.md names tests that exist."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
LINES = 29  # a fault that loses its line is noticed


def table() -> list[str]:
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    section = page.partition("## Every fault has a test")[2].partition("\n## ")[0]
    return [line for line in section.splitlines() if line.startswith("| ")][1:]


def test_every_fault_names_tests_that_exist() -> None:
    lines = table()
    assert len(lines) == LINES
    functions: dict[str, set[str]] = {}
    for line in lines:
        named = NAMED.findall(line)
        assert named, line
        for file, name in named:
            if file not in functions:
                tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
                functions[file] = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
            assert name in functions[file], f"{file}::{name}"


def test_no_line_is_there_twice() -> None:
    faults = [line.split("|")[1] for line in table()]
    assert len(set(faults)) == len(faults)
