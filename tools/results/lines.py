"""Header and rows as a table of Markdown."""

from __future__ import annotations


def lines(header: list[str], rows: list[list[str]], right: list[bool]) -> str:
    rule = ["---:" if number else "---" for number in right]
    made = ["| " + " | ".join(header) + " |", "|" + "|".join(rule) + "|"]
    made += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(made) + "\n"
