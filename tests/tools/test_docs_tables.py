"""Pages read as they were meant: no blank line cuts a table in two."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_table_is_cut_by_a_blank_line(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    cut = [
        number
        for number, (before, line, after) in enumerate(
            zip(lines, lines[1:], lines[2:], strict=False), start=2
        )
        if not line.strip() and before.startswith("|") and after.startswith("|")
    ]
    assert cut == []
