"""One cell: skipped when done, locked while it runs, its folder named only when it is whole."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from d2cp.core.files import sha256, whole_folder
from d2cp.core.locks import held_in
from d2cp.core.machine import code_commit, machine_class
from d2cp.core.sealed import write_sealed
from d2cp.reproduce.by_method import method_cell
from d2cp.reproduce.cells import RESULT, Cell, DataSet
from d2cp.reproduce.earlier import made_as
from d2cp.reproduce.found import concepts_cell, recall_cell
from d2cp.reproduce.looked_at import saliency_cell
from d2cp.reproduce.shared import Shared, prepare
from d2cp.reproduce.trained import train_cell

Runner = Callable[[Cell, Shared, Path], dict[str, Any]]
RUNNERS: dict[str, Runner] = {
    "train": train_cell,
    "recall": recall_cell,
    "concepts": concepts_cell,
    "saliency": saliency_cell,
}


class Workshop:
    """Runs cells, and keeps the last seed's shared stages in memory for the cells after."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self._open: tuple[tuple[str, int], Shared] | None = None

    def shared(self, data: DataSet, seed: int) -> Shared:
        key = (data.name, seed)
        if self._open is None or self._open[0] != key:
            self._open = key, prepare(data, seed, quiet=self.quiet)
        return self._open[1]

    def run(self, cell: Cell) -> dict[str, Any]:
        """What the cell found; another process on the same cell is waited for, not repeated."""
        if (found := cell.finished()) is not None:
            return found
        with held_in(cell.folder.parent, f".{cell.identity}.lock", wait=True):
            if (found := cell.finished()) is not None:
                return found
            with whole_folder(cell.folder) as folder:
                made = self._make(cell, folder)
                made["files"] = {p.name: sha256(p) for p in folder.iterdir() if p.is_file()}
                write_sealed(folder / RESULT, made)
            shutil.rmtree(cell.checkpoints, ignore_errors=True)
        return made

    def _make(self, cell: Cell, folder: Path) -> dict[str, Any]:
        if cell.row.kind == "method":
            began = time.monotonic()
            content = method_cell(cell, folder)
        else:
            if cell.row.kind == "saliency":
                self.run(cell.training)
            shared = self.shared(cell.data, cell.seed)
            began = time.monotonic()
            content = RUNNERS[cell.row.kind](cell, shared, folder)
        return {
            "identity": cell.identity,
            "data": cell.data.name,
            "seed": cell.seed,
            **made_as(cell.row, cell.data),
            "scale": cell.data.scale,
            "changes": dict(cell.row.changes),
            "config": cell.config.to_dict(),
            "machine": machine_class(),
            "commit": code_commit(),
            "seconds": round(time.monotonic() - began, 1),
            **content,
        }
