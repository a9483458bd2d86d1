"""The scan as a stage: the lenses look at the run's images, the findings are kept."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from threading import Lock

import numpy as np

from d2cp.config.scan import ScanConfig
from d2cp.core.progress import Bar, progress
from d2cp.core.text import visible
from d2cp.data.source import ColouredSource
from d2cp.data.store import ImageStore
from d2cp.data.table import Table
from d2cp.errors import DataError
from d2cp.pipeline.context import Context
from d2cp.pipeline.scan_words import add_words
from d2cp.scan.bank import IMAGE_LENSES
from d2cp.scan.batched import Ints
from d2cp.scan.details import DETAILS, add_details
from d2cp.scan.eyes import Features, StoreEyes
from d2cp.scan.finding import Scan
from d2cp.scan.lenses.user_columns import read_columns
from d2cp.scan.phrases import Phrases
from d2cp.scan.scan_files import load_scan, save_scan
from d2cp.scan.scanner import rows_to_learn_from, scan
from d2cp.scan.workers import sharing


def scan_stage(context: Context, phrases: Phrases | None = None) -> Scan:
    """What the lenses find; no true attribute is read. An unchanged scan is read back. Words of
    `phrases` are put beside it; where none are asked for, those that are there stay."""
    config = ScanConfig.of(context.config.scan, context.config.seed)
    columns = _columns(context)
    inputs = context.inputs("scan", [columns, DETAILS, IMAGE_LENSES])

    def make(folder: Path) -> None:
        table, store = context.blind, _images(context)
        with sharing(), progress(len(table), "looking", quiet=context.quiet) as bar:
            fit = rows_to_learn_from(table, config)
            _require_classes(table, fit)
            eyes = _Watched(store, fit, config.centres, config.seed)
            eyes.bar = bar
            found = scan(table, eyes, fit, config, columns)
        save_scan(found, table, folder)
        with sharing():
            add_details(found, table, store, folder, config.seed)

    found = load_scan(context.stage("scan", inputs, make, alone=True))
    return found if phrases is None else add_words(context, found, phrases)


def _require_classes(table: Table, fit: Ints) -> None:
    """Cross-fitting learns a class from some images and judges it by others."""
    counts = np.bincount(table.y[fit], minlength=table.n_classes)
    rarest = int(counts.argmin())
    if counts[rarest] < 2:
        raise DataError(
            f"class {visible(table.class_names[rarest])} has {counts[rarest]} training images",
            expected="at least 2 of every class",
            remedy="add some, or leave the class out; `d2cp check` counts them",
        )


class _Watched(StoreEyes):
    """Eyes that tell how far they are."""

    bar: Bar

    def __init__(self, store: ImageStore, rows: Ints, centres: int, seed: int) -> None:
        super().__init__(store, rows, centres, seed)
        self._lock = Lock()

    def look(self, rows: Ints, lenses: Collection[str]) -> Features:
        found = super().look(rows, lenses)
        with self._lock:
            self.bar.done += len(rows) - 1
            self.bar.step(len(rows))
        return found


def _images(context: Context) -> ImageStore:
    """Whole pictures, both sides made equally long: stamps are in corners, and a square from the
    middle has lost them."""
    source, size = context.table.source, context.config.scan.size
    side = source.side if isinstance(source, ColouredSource) else size
    return context.images(side, "stretch")


def _columns(context: Context) -> dict[str, list[str]]:
    names = context.config.scan.columns
    if not names:
        return {}
    data = context.run.description["data"]
    place = str(data.get("path", context.table.name))
    ids = np.asarray(context.table.ids).tolist()
    return read_columns(Path(place), names, ids, data.get("columns", {}))
