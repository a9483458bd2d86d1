"""docs/reproduced.md, whole, from the tables that `d2cp reproduce` wrote (docs/results/*.json)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from d2cp.reproduce.page import correlation, spread
from d2cp.reproduce.tables import REPRODUCTIONS, chosen
from tools.results.files import Whole, read
from tools.results.lines import lines
from tools.results.prose import fill, require_filed

HEAD = """\
<!-- Made by `python -m tools.results`; notes are in docs/results/notes.json. -->
# The paper's tables, run again

Every figure comes from a file in `docs/results` that `d2cp reproduce` wrote. `python -m
tools.results --take REPRODUCED` brings new files and makes this page from them. Accuracies are in
percent, ± is the standard deviation over seeds; the paper's figures (ViT-B/16, three seeds) stand
beside ours. True groups score; what picked a state and the commit of the code are named under each
table. The scale `here`:
[running](running.md#the-papers-tables-and-figures).
"""


def page(docs: Path) -> str:
    found = [read(path) for path in sorted((docs / "results").glob("*-*.json"))]
    order = list(REPRODUCTIONS)
    found.sort(key=lambda whole: (order.index(whole["table"]), whole["figures"][0]["data"]))
    notes = json.loads((docs / "results" / "notes.json").read_text("utf-8"))
    for name, note in notes.items():
        require_filed(note, f"notes.json, {name}")
        notes[name] = fill(note, docs)
    return HEAD + "".join(section(whole, notes) for whole in found)


def section(whole: Whole, notes: Mapping[str, str]) -> str:
    data = list(dict.fromkeys(f["data"] for f in whole["figures"]))
    name = f"{whole['table']}-{'-'.join(data)}"
    text = f"\n## {whole['title']}: {', '.join(data)}\n\n```\n{command(whole, data)}\n```\n\n"
    for one, split in dict.fromkeys((f["data"], f["split"]) for f in whole["figures"]):
        text += f"{one}, `{split}`:\n\n{table(whole, one, split)}\n"
    for order in whole["rank_correlation"]:
        text += f"- {correlation(order)}\n"
    picked = ", ".join(f"`{rule}`" for rule in whole["selection"])
    seeds = "Seed 0" if whole["seeds"] == 1 else f"Seeds 0 to {whole['seeds'] - 1}"
    text += f"- {seeds}; {whole['machine']}; commit {whole['commit']}; "
    text += f"{whole['seconds']:,.0f} s in all cells"
    text += f"; states picked by {picked}.\n" if picked else ".\n"
    text += f"- The paper: {whole['paper']['where']}.\n"
    if note := notes.get(name, ""):
        text += f"\n{note}\n"
    return text


def command(whole: Whole, data: Sequence[str]) -> str:
    named = [one if one == "cmnist" else one.upper() for one in data]
    words = ["d2cp reproduce", whole["table"], *named, "--out REPRODUCED"]
    words += [f"--scale {whole['scale']}", f"--seeds {whole['seeds']}"]
    usual, every = (
        {row.key for row in table.rows}
        for table in (chosen(whole["table"]), REPRODUCTIONS[whole["table"]])
    )
    had = list(dict.fromkeys(f["row"] for f in whole["figures"]))
    if set(had) != usual and set(had) <= every:
        words.append(f"--rows {','.join(had)}")
    if whole["backbone"] != "embedded":
        words.append("--backbone FOLDER")
    words += [f"--column {column}" for column in whole.get("column", [])]
    words += ["--masks MASKS"] if "masks" in whole else []
    words += [f"--set {assignment}" for assignment in whole["set"]]
    return " ".join(words)


def table(whole: Whole, data: str, split: str) -> str:
    own = [f for f in whole["figures"] if (f["data"], f["split"]) == (data, split)]
    beside = {f["metric"] for f in own if f["paper"] is not None}
    header, rows = ["row"], []
    for metric in whole["metrics"]:
        header.append(metric["heading"])
        header += ["paper"] if metric["key"] in beside else []
    for row in dict.fromkeys(f["row"] for f in own):
        by = {f["metric"]: f for f in own if f["row"] == row}
        cells = [next(iter(by.values()))["name"]]
        for metric in whole["metrics"]:
            f = by.get(metric["key"], {})
            cells.append(spread(f.get("mean"), f.get("std")))
            if metric["key"] in beside:
                cells.append(spread(f.get("paper"), f.get("paper_std")))
        first = by.get(whole["metrics"][0]["key"], {})
        cells.append(", ".join(f"{100 * v:.1f}" for v in first.get("by_seed", {}).values()))
        rows.append(cells)
    header.append("by seed")
    return lines(header, rows, [False, *[True] * (len(header) - 2), False])
