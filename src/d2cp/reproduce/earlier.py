"""Finished cells of other settings, or of another version, in the folder of a table: they are not
used, which a person is told before hours of training begin. No torch here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from d2cp import __version__
from d2cp.core.differences import ABSENT, differing, told
from d2cp.reproduce.cells import RESULT, Cell, DataSet
from d2cp.reproduce.tables import Row

Content = Mapping[str, Any]
Changed = dict[str, tuple[Any, Any]]
UNSEEN = ("preset", "backbone", "seed")  # no part of a cell's identity, or the same in both
MOST = 5  # differences that are listed


def made_as(row: Row, data: DataSet) -> dict[str, Any]:
    """What a cell records, besides its settings, to be told from another later."""
    return {"row": row.key, "kind": row.kind, "version": __version__, "of": data.identity}


def earlier(cells: Sequence[Cell]) -> list[str]:
    """In lines, a paragraph a data set and set of differences; none where nothing is stale."""
    lines: list[str] = []
    for data in {cell.data.name: cell.data for cell in cells}.values():
        left = [cell for cell in cells if cell.data is data and not cell.is_finished]
        found = list(_contents(data)) if left else []
        by: dict[str, tuple[list[Cell], Changed, list[str]]] = {}
        for cell in left:
            own = [(*_differences(cell, one),) for one in found if _is_for(one, cell)]
            if own:
                changed, other = min(own, key=lambda pair: len(pair[0]) + len(pair[1]))
                by.setdefault(repr((changed, other)), ([], changed, other))[0].append(cell)
        for stale, changed, other in by.values():
            lines += _paragraph(data, stale, changed, other)
    return lines


def _contents(data: DataSet) -> Iterator[Content]:
    for path in sorted((data.folder / "cells").glob(f"*/{RESULT}")):
        try:
            content = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError):
            continue  # a cell that is damaged is told where it is read
        if isinstance(content, dict) and isinstance(content.get("config"), dict):
            yield content


def _is_for(content: Content, cell: Cell) -> bool:
    """Whether it was this row and seed, whatever its settings. Older cells do not say their kind,
    but those that trained have steps."""
    kind = content.get("kind", "train" if "steps" in content else "")
    if (kind, content.get("seed")) != (cell.row.kind, cell.seed):
        return False
    if kind == "train":
        return bool(content.get("changes") == dict(cell.row.changes))
    return bool(content.get("row") == cell.row.key)


def _differences(cell: Cell, content: Content) -> tuple[Changed, list[str]]:
    """Settings that differ, and in words what else the identity hangs on."""
    every = differing(content["config"], cell.config.to_dict())
    changed = {name: pair for name, pair in every.items() if name not in UNSEEN}
    other = []
    if content.get("version", __version__) != __version__:
        other.append(told("the version", content["version"], __version__))
    if content.get("of", cell.data.identity) != cell.data.identity:
        other.append("the data set or the backbone's weights are other ones")
    if not changed and not other:
        other.append("the version, the data set or the backbone's weights: it does not say which")
    return changed, other


def _paragraph(
    data: DataSet, stale: Sequence[Cell], changed: Changed, other: Sequence[str]
) -> list[str]:
    rows = ", ".join(dict.fromkeys(cell.row.key for cell in stale))
    seeds = ", ".join(str(seed) for seed in sorted({cell.seed for cell in stale}))
    differences = [*(told(name, *pair) for name, pair in changed.items()), *other]
    more = len(differences) - MOST
    advice = "they are run again and the old ones stay"
    if not other and all(ABSENT not in pair for pair in changed.values()):
        settings = (f"--set {name}={json.dumps(then)}" for name, (then, _) in changed.items())
        advice = f"to use them: {' '.join(settings)}"
    return [
        f"{data.folder}: {len(stale)} finished cells were run otherwise and are not used "
        f"(rows {rows}; seeds {seeds}):",
        *(f"    {line}" for line in differences[:MOST]),
        *([f"    and {more} more"] if more > 0 else []),
        f"  {advice}; to keep the two apart: another --out",
    ]
