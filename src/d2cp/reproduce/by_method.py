"""A cell of Table 1: one method of `d2cp compare` on one seed, in the seed's own run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from d2cp.compare.available import obstacle
from d2cp.compare.grid import Grid, read_cell, run_seed
from d2cp.compare.registry import method
from d2cp.core.records import CellRecord
from d2cp.reproduce.cells import Cell, DataSet
from d2cp.reproduce.trained import lines_of


def method_cell(cell: Cell, folder: Path) -> dict[str, Any]:
    """The comparison's own cell lies beside ours; what its seed shares is what our cells share."""
    grid = grid_of(cell.data, cell.row.key)
    run_seed(grid, cell.seed, {})
    found = read_cell(grid.cell(cell.row.key, cell.seed), CellRecord)
    return {"lines": lines_of(found["results"]), **found}


def grid_of(data: DataSet, name: str) -> Grid:
    """At the paper's scale every training has the paper's epochs; here every method the passes that
    row (f) of Table 2 takes."""
    config = data.config
    debias = config.debias
    images = debias.epoch_size or len(data.table.rows("train"))
    return Grid(
        place=data.place,
        out=data.folder,
        config={k: v for k, v in config.to_dict().items() if k != "seed"},
        names=(name,),
        budget=2 * debias.epochs * images,
        epochs=debias.epochs if data.scale == "paper" else 0,
        tier=debias.tier,
        cache_dir=data.cache_dir,
        quiet=True,
    )


def why_not(data: DataSet, name: str) -> str:
    """Why a method cannot run on this data set; empty when it can."""
    from d2cp.backbone.text_tower import has_text_encoder

    spec = method(name).spec
    text = "text" in spec.needs and has_text_encoder(data.config.backbone)
    return obstacle(spec, tier=data.config.debias.tier, table=data.table, text=text)
