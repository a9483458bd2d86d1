"""Pictures of several cells as one figure: the same images, and a row of maps for every model.

A cell leaves its tiles side by side in one file; the figure is put together when the table is
written, from whichever rows it has. No torch here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from d2cp.core.arrays import Bytes as Pixels
from d2cp.disentangle.canvas import Grid, save_png
from d2cp.reproduce.cells import Cell

IMAGES, MAPS = "images.png", "maps.png"
NOTE = "Blue: the place had no part in the answer. Yellow: it spoke for it most."


def save_strip(tiles: Sequence[Pixels], path: Path) -> None:
    """Square tiles of one size, from left to right."""
    save_png(Image.fromarray(np.concatenate(tiles, axis=1)), path)


def tiles_of(path: Path) -> list[Pixels]:
    with Image.open(path) as opened:
        strip = np.asarray(opened.convert("RGB"))
    return [np.ascontiguousarray(part) for part in np.split(strip, strip.shape[1] // len(strip), 1)]


def figures(found: Sequence[tuple[Cell, dict[str, Any]]], folder: Path) -> list[tuple[str, Path]]:
    """One figure a data set and seed, of the cells that left strips: titles and files."""
    groups: dict[tuple[str, int], list[tuple[Cell, dict[str, Any]]]] = {}
    for cell, content in found:
        if "columns" in content:
            groups.setdefault((cell.data.name, cell.seed), []).append((cell, content))
    made = []
    for (data, seed), own in groups.items():
        first, content = own[0]
        rows = [("image", tiles_of(first.folder / IMAGES))]
        rows += [(cell.row.name, tiles_of(cell.folder / MAPS)) for cell, _ in own]
        path = folder / f"{data}-{seed}-maps.png"
        title = f"Where each model looks: {data}, seed {seed}"
        save_png(Grid(title, NOTE, content["columns"], rows).draw(), path)
        made.append((title, path))
    return made
