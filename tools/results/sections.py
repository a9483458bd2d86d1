"""docs/results.md, whole: sections (docs/results/sections/*.txt, in the order of their names) with
tables and figures from result files.

{{ whole: harm }}          how the file was made, and all its tables
{{ table: harm NAME }}     one table of measured/harm.json (no name where it has one)
{{ table: birds test }}    a split of compare/birds.json

Figures in sentences: `tools.results.prose`.
"""

from __future__ import annotations

import re
from pathlib import Path

from tools.results.compared import table as compared_table
from tools.results.files import ResultFileError, Whole, find, read
from tools.results.lines import lines
from tools.results.prose import fill, number, require_filed

HEAD = "<!-- Made by `python -m tools.results` from result files and docs/results/sections. -->\n"
BLOCK = re.compile(r"^\{\{ (whole|table): ([\w/\-]+)(?: ([^{}]+))? \}\}$", re.MULTILINE)


def results_page(docs: Path) -> str:
    found = sorted((docs / "results" / "sections").glob("*.txt"))
    return HEAD + "\n".join(section(path.read_text("utf-8"), str(path), docs) for path in found)


def section(text: str, where: str, docs: Path) -> str:
    """A text with its placeholders filled; refused where a figure has no file."""
    require_filed(BLOCK.sub("", text), where)

    def block(match: re.Match[str]) -> str:
        path, wanted = find(docs, match.group(2)), match.group(3) or ""
        if match.group(1) == "table":
            return table(path, wanted).rstrip("\n")
        whole = read(path)
        names = list(whole["summary"]) if "summary" in whole else list(whole["tables"])
        tables = [(f"{name}:\n\n" if name else "") + table(path, name) for name in names]
        return f"```\n{whole['command']}\n```\n\n" + "\n".join([*tables, facts(whole)]).rstrip()

    return fill(BLOCK.sub(block, text), docs)


def table(path: Path, name: str) -> str:
    whole = read(path)
    if "summary" in whole:
        if name not in whole["summary"]:
            raise ResultFileError(f"{path}: it has no split {name!r}")
        return compared_table(path, name)
    if name not in whole["tables"]:
        raise ResultFileError(f"{path}: it has no table {name!r}")
    header, rows = whole["tables"][name]["columns"], whole["tables"][name]["rows"]
    return lines(header, rows, [all(number(row[i]) for row in rows) for i in range(len(header))])


def facts(whole: Whole) -> str:
    """One line on how a file was made."""
    about = [whole["about"]] if whole.get("about") else []
    if "summary" in whole:
        first = next(iter(next(iter(whole["by_seed"].values())).values()))
        seeds = [int(seed) for seed in first]
        budget = f"{whole['epochs']} epochs" if whole.get("epochs") else f"{whole['budget']} passes"
        about += [f"{whole['backbone']}, {whole['tier']}, {budget} a method"]
        about += [f"{whole['searched']} draws a search"] if whole.get("searched") else []
    else:
        seeds = whole["seeds"]
    rule = whole["selection"]
    about += [spoken(seeds)]
    about += [f"selection {rule}" if " " in rule else f"picked by `{rule}`"] if rule else []
    parts = [*about, whole["machine"], f"commit {whole['commit']}"]
    return f"- {'; '.join(parts)}.\n"


def spoken(seeds: list[int]) -> str:
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    if seeds == list(range(seeds[0], seeds[-1] + 1)):
        return f"seeds {seeds[0]} to {seeds[-1]}"
    return "seeds " + ", ".join(map(str, seeds))
