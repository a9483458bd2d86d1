"""What all cells of a data set and seed share, made once: stage 1, frozen features, XRM's bits."""

from __future__ import annotations

from dataclasses import dataclass, replace

from d2cp.backbone import load_backbone
from d2cp.errors import RunError
from d2cp.pipeline.context import Context
from d2cp.pipeline.discovered import Discovery
from d2cp.pipeline.discovery import discover
from d2cp.pipeline.environment_bits import Bits, environments
from d2cp.pipeline.opening import open_run
from d2cp.reproduce.cells import SEEDS, Cell, DataSet


@dataclass(frozen=True)
class Shared:
    """Stages that are finished; after `prepare` the run is only read, by any number of cells."""

    context: Context
    found: Discovery
    bits: Bits

    def context_of(self, cell: Cell) -> Context:
        """The same run, images and log, as this cell's settings see it."""
        return replace(self.context, config=cell.config)


def prepare(data: DataSet, seed: int, *, quiet: bool = False) -> Shared:
    """Make or verify the shared stages. A second process waits, then finds them made."""
    try:
        return _prepare(data, seed, quiet)
    except RunError as error:
        if "--force" not in error.remedy:
            raise
        raise RunError(  # nothing here is redone by force: what others share would change
            error.found,
            expected="stage 1 with the settings that the tables in this folder share",
            remedy=f"use the same settings, or another --out than {data.out}; if they are the same "
            f"and the record is damaged, delete {data.folder / SEEDS / str(seed) / 'run.json'}",
        ) from None


def _prepare(data: DataSet, seed: int, quiet: bool) -> Shared:
    path = data.folder / SEEDS / str(seed)
    config = replace(data.config, seed=seed)
    side = config.debias.image_size
    load_backbone(config.backbone).grid(side, side)  # told now, not after stage 1
    with open_run(
        data.table,
        path,
        config,
        place=data.place,
        cache_dir=data.cache_dir,
        quiet=quiet,
        wait=True,
    ) as context:
        found = discover(context)
        return Shared(context, found, environments(context, found))
