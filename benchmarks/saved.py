"""A benchmark's figures as a file that a page of docs can be made of (`python -m tools.results`).

    saved.option(parser)                      # adds --save FILE
    saved.save(given.save, seeds=…, selection=…, tables={"": saved.table(header, rows)})

The file says how it was made: the command, commit, machine, seeds, and what picked a state or
setting. Figures are texts, as they were printed.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from d2cp.core.files import write_json
from d2cp.core.machine import code_commit, machine_class

SCHEMA = 1
Table = dict[str, Any]


def option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--save", type=Path, metavar="FILE", help="write the figures there as well, as JSON"
    )


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    return {"columns": list(header), "rows": [[str(cell) for cell in row] for row in rows]}


def save(
    path: Path | None,
    *,
    seeds: Sequence[int],
    selection: str,
    tables: Mapping[str, Table],
    figures: Mapping[str, str] | None = None,
    about: str = "",
) -> None:
    """`tables` by name, "" where there is one; `figures` by name, for sentences; `about` is one
    line on the data or the settings. Nothing is written without a path."""
    if path is None:
        return
    whole = {
        "schema": SCHEMA,
        "command": command(sys.argv),
        "commit": code_commit(),
        "machine": machine_class(),
        "seeds": list(seeds),
        "selection": selection,
        "about": about,
        "tables": dict(tables),
        "figures": dict(figures or {}),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, whole)


def command(words: Sequence[str]) -> str:
    """What was typed, without --save and without this machine's folders: /a/b/birds is BIRDS."""
    said = ["python", f"benchmarks/{Path(words[0]).name}"]
    rest = iter(words[1:])
    for word in rest:
        if word == "--save":
            next(rest, None)
        elif not word.startswith("--save="):
            said.append(Path(word).name.upper() if "/" in word else word)
    return shlex.join(said)
