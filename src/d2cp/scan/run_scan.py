"""`d2cp scan` in a run directory: open the data, look, keep the findings."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from d2cp import __version__
from d2cp.config.scan import ScanConfig
from d2cp.core.files import fingerprint, write_bytes
from d2cp.core.progress import Bar, progress
from d2cp.core.run_directory import RunDirectory
from d2cp.data.image_access import load_images
from d2cp.data.place import Place
from d2cp.data.source import ColouredSource
from d2cp.data.store import ImageStore
from d2cp.data.table import Table
from d2cp.scan.batched import Ints
from d2cp.scan.details import DETAILS, add_details
from d2cp.scan.eyes import Features, StoreEyes
from d2cp.scan.finding import Scan
from d2cp.scan.lenses.user_columns import read_columns
from d2cp.scan.scan_files import SCORES, load_scan, save_scan
from d2cp.scan.scanner import rows_to_learn_from, scan

STAGE = "scan"


def run_scan(
    data: Table | str | Path,
    *,
    out: Path | str,
    config: ScanConfig | None = None,
    format: str | None = None,
    roles: Mapping[str, str] | None = None,
    images: Path | str | None = None,
    scores_out: Path | None = None,
    cache_dir: Path | None = None,
    force: bool = False,
    quiet: bool = False,
) -> Scan:
    """Scan a data set; an unchanged scan is read back from `out`. `roles` are the columns that
    `load_table` reads, by their role; `images` is as there."""
    config = config or ScanConfig()
    place = None if isinstance(data, Table) else Place.of(data, format, roles, images)
    table = data if isinstance(data, Table) else Place.of(data, format, roles, images).table()
    run = RunDirectory(out)
    with run.locked():
        table, store = scan_images(table.without_attribute(), config.size, cache_dir, quiet)
        columns = _columns(data, config.columns, table)
        settings: dict[str, Any] = dataclasses.asdict(config) | {"columns": list(config.columns)}
        identity = fingerprint([table.fingerprint(), store.key])
        recorded = {} if place is None else place.record()
        described = {"name": table.name, "fingerprint": identity, **recorded}
        run.start(
            {"version": __version__, "data": described, "scan_settings": settings}, force=force
        )
        inputs = fingerprint([STAGE, __version__, settings, identity, columns, DETAILS])
        if not run.is_current(STAGE, inputs):
            with (
                run.writing(STAGE, inputs) as folder,
                progress(len(table), "looking", quiet=quiet) as bar,
            ):
                fit = rows_to_learn_from(table, config)
                eyes = _Watched(store, fit, config.centres, config.seed)
                eyes.bar = bar
                found = scan(table, eyes, fit, config, columns)
                save_scan(found, table, folder)
                add_details(found, table, store, folder, config.seed)
        if scores_out is not None:
            write_bytes(scores_out, (run.path / STAGE / SCORES).read_bytes())
    return load_scan(run.artifact(STAGE))


class _Watched(StoreEyes):
    """Eyes that tell how far they are."""

    bar: Bar

    def look(self, rows: Ints) -> tuple[Features, Features]:
        found = super().look(rows)
        self.bar.done += len(rows) - 1
        self.bar.step(len(rows))
        return found


def scan_images(
    table: Table, size: int, cache_dir: Path | None = None, quiet: bool = False
) -> tuple[Table, ImageStore]:
    """The readable rows and their images at the size the lenses look at."""
    if isinstance(table.source, ColouredSource):
        size = table.source.side
    return load_images(table, size, cache_dir, quiet=quiet)


def _columns(data: Table | str | Path, names: Sequence[str], table: Table) -> dict[str, list[str]]:
    if not names:
        return {}
    return read_columns(Path(str(data)), names, np.asarray(table.ids).tolist())
