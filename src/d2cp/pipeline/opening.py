"""The first stage: the data set is read, bounded, and recorded; the run is opened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
from rich.console import Console

from d2cp import __version__
from d2cp.config import Config
from d2cp.core.device import require_precision
from d2cp.core.files import fingerprint, write_csv, write_json
from d2cp.core.processes import is_main, main_first, wait_for_all
from d2cp.core.records import DataSummary
from d2cp.core.run_directory import RunDirectory
from d2cp.core.text import visible
from d2cp.data.copies import across_splits, thumbnails
from d2cp.data.image_access import load_images
from d2cp.data.place import Place
from d2cp.data.source import ColouredSource
from d2cp.data.table import SPLIT_NAMES, Table
from d2cp.errors import DataError
from d2cp.pipeline.context import Context
from d2cp.pipeline.stages import settled

SUMMARY = "summary.json"


@contextmanager
def open_run(
    table: Table,
    out: Path | str,
    config: Config,
    *,
    place: Place | None = None,
    cache_dir: Path | None = None,
    console: Console | None = None,
    quiet: bool = False,
    force: bool = False,
    tensorboard: bool = False,
    wait: bool = False,
    splits: Sequence[str] = ("train", "val"),
) -> Iterator[Context]:
    """Lock the run, refuse one that was started with other settings, write the data stage.

    `wait` for a run that another process holds, where that is not refused. `place` is where a
    person found the data set: commands that the run prints name it. `splits` must have images.
    """
    from d2cp.core.machine import describe

    for precision in (config.disentangle.precision, config.debias.precision):
        require_precision(precision)
    _require_splits(table, splits)
    quiet = quiet or not is_main()
    bounded = bound(table, config)
    run = RunDirectory(out)
    with run.locked(wait=wait) if is_main() else nullcontext():
        # Rows that cannot be read drop out here, once, for all later stages.
        with main_first():
            readable, store = load_images(bounded, config.disentangle.size, cache_dir, quiet=quiet)
        context = Context(
            run=run,
            config=config,
            table=readable,
            console=console or Console(stderr=True),
            cache_dir=cache_dir,
            quiet=quiet,
            force=force,
            tensorboard=tensorboard,
            place=place,
        )
        context._stores[store.size, "cover"] = store
        identity = fingerprint([readable.fingerprint(), store.key])
        if is_main():
            recorded = {} if place is None else place.record()
            description = {
                "version": __version__,
                "data": {"name": table.name, "fingerprint": identity, **recorded},
                "config": config.to_dict(),
            }
            run.start(description, force=force, settled=settled(run.has))
            write_json(run.path / "environment.json", describe())
        wait_for_all()
        _write_data_stage(context, bounded, identity)
        try:
            yield context
        finally:
            context.log.close()


def bound(table: Table, config: Config) -> Table:
    """At most as many images of each split as the limits say, in the classes' proportions.

    The rows are chosen by class alone: true attributes have no say in what is trained on.
    """
    own = {"train": config.train_limit, "val": config.val_limit}
    limits = {name: own.get(name, config.test_limit) for name in table.split_names}
    limits = {name: limit for name, limit in limits.items() if limit}
    if not limits:
        return table
    chosen = table.without_attribute().subsample(limits, config.seed)
    return table.subset(np.flatnonzero(np.isin(table.ids, chosen.ids)))


def _require_splits(table: Table, splits: Sequence[str]) -> None:
    for name in splits:
        if not len(table.rows(name)):
            raise DataError(
                f"{table.name!r} has no images in split {name!r}",
                expected=f"images in {' and in '.join(splits)}",
                remedy="see `d2cp check` for the counts that were found",
            )


def _write_data_stage(context: Context, before: Table, identity: str) -> None:
    table = context.table

    def make(folder: Path) -> None:
        gone = ~np.isin(before.ids, table.ids)
        lost = Counter(table.class_names[y] for y in before.y[gone])
        summary = {
            "name": table.name,
            "format": table.format,
            "fingerprint": identity,
            "class_names": list(table.class_names),
            "counts": table.counts(),
            "quarantined": dict(lost),
            "warnings": [*table.warnings, *_copies(context)],
            "notes": list(table.notes),
        }
        if table.attribute_names is not None:
            summary["attribute_names"] = list(table.attribute_names)
        write_json(folder / SUMMARY, summary)
        header = ["row", "id", "split", "y", *(["a"] if table.a is not None else [])]
        columns = [table.ids, [SPLIT_NAMES[s] for s in table.split], table.y]
        if table.a is not None:
            columns.append(table.a)
        write_csv(folder / "table.csv", header, zip(range(len(table)), *columns, strict=True))

    inputs = context.inputs("data", identity)
    context.stage("data", inputs, make, alone=True)
    kept = context.run.read("data", SUMMARY, DataSummary)
    for line in (*kept.get("warnings", []), *kept.get("notes", [])):
        context.say(f"data: {visible(line)}")


def _copies(context: Context) -> list[str]:
    """Images that the model would be trained on and scored on, in one sentence."""
    table = context.table
    if isinstance(table.source, ColouredSource):
        return []  # the embedded sets are known, and their digits look much alike
    pictures = thumbnails(context.images(context.config.disentangle.size))
    found = across_splits(pictures, np.arange(len(table), dtype=np.int64), table)
    if not found:
        return []
    row, known = found[0]
    which = "image copies" if len(found) == 1 else "images copy"
    return [
        f"{len(found)} {which} one of an earlier split, byte for byte or resized: "
        f"{table.ids[row]} is {table.ids[known]}; `d2cp check` lists them"
    ]
