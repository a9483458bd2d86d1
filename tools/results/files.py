"""Result files: what each must say of itself, and its figures by name.

docs/results/TABLE-DATA.json     a table of `d2cp reproduce`
docs/results/compare/NAME.json   a comparison of `d2cp compare`
docs/results/measured/NAME.json  what a benchmark's --save wrote, or runs that were taken
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from d2cp.cli.compare import difference
from d2cp.reproduce.page import spread

Whole = Mapping[str, Any]
KINDS = {
    "measured": ("command", "commit", "machine", "seeds", "selection", "tables"),
    "compare": ("command", "commit", "machine", "selection", "summary", "by_seed"),
    "results": ("table", "commit", "machine", "seeds", "selection", "figures"),
}


class ResultFileError(Exception):
    """A page cannot be made from what is there."""


def find(docs: Path, name: str) -> Path:
    """`harm` is measured/harm.json, compare/harm.json or harm.json."""
    places = [docs / "results" / f"{folder}{name}.json" for folder in ("measured/", "compare/", "")]
    for path in places:
        if path.is_file():
            return path
    raise ResultFileError(f"there is no result file {name!r} in docs/results")


def read(path: Path) -> Whole:
    """The content of a result file that says how it was made."""
    whole: Whole = json.loads(path.read_text("utf-8"))
    require(whole, KINDS[path.parent.name], path)
    return whole


def require(whole: Whole, keys: Sequence[str], path: Path) -> None:
    for key in keys:
        if not whole.get(key) and not (key == "selection" and key in whole):
            raise ResultFileError(
                f"{path}: it does not say its {key}; it was made by older code, or not by a command"
            )


def shortened(command: str) -> str:
    """Without this machine's folders: /a/b/birds is BIRDS."""
    words = [Path(w).name.upper() if w.startswith(("/", "~", ".")) else w for w in command.split()]
    return " ".join(words)


def figure(docs: Path, words: Sequence[str]) -> str:
    """The text for a placeholder: the name of a file, then what is wanted of it."""
    path = find(docs, words[0])
    whole, keys = read(path), words[1:]
    try:
        if path.parent.name == "measured":
            return str(whole["figures"][" ".join(keys)])
        if path.parent.name == "compare":
            return _compared(whole, *keys)
        return _reproduced(whole, *keys)
    except (KeyError, StopIteration, TypeError) as error:
        raise ResultFileError(f"{path}: it has no figure {' '.join(keys)!r}") from error


def _compared(whole: Whole, split: str, method: str, column: str) -> str:
    """A column of a method, or `paired`: D2CP minus it."""
    if column == "paired":
        return difference(whole["paired"][split][method])
    line = next(line for line in whole["summary"][split] if line["method"] == method)
    return spread(line[column], line.get(f"{column}_std"))


def _reproduced(whole: Whole, split: str, row: str, metric: str) -> str:
    """Our figure, or the paper's where `paper-` stands before the metric."""
    theirs = metric.startswith("paper-")
    f = next(
        f
        for f in whole["figures"]
        if (f["split"], f["row"], f["metric"]) == (split, row, metric.removeprefix("paper-"))
    )
    return spread(f["paper"], f["paper_std"]) if theirs else spread(f["mean"], f["std"])
