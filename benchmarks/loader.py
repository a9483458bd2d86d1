"""Loader throughput: decoding with Pillow in every epoch against the decode-once cache.

    python benchmarks/loader.py PATH [--size 128] [--epochs 2]

Both deliver shuffled uint8 batches at the working size. The cache is built in a fresh folder, so
the first epoch pays for it (and for the checks of the safe decoder).
"""

from __future__ import annotations

import argparse
import io
import tempfile
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from rich.console import Console
from rich.table import Table as RichTable

import saved
from d2cp.core.rng import permutation
from d2cp.data import ImageStore, Table, load_images, load_table
from d2cp.data.digests import ordered_map, threads
from d2cp.data.images import to_square
from d2cp.data.source import EncodedSource

BATCH = 64


def decode_epoch(table: Table, size: int, order: NDArray[np.int64], workers: bool) -> int:
    """One epoch as a usual loader does it: every image decoded again."""
    source = table.source
    assert isinstance(source, EncodedSource)

    def one(row: int) -> NDArray[np.uint8]:
        image = Image.open(io.BytesIO(source.read(row))).convert("RGB")
        return to_square(image, size, centre_crop=source.centre_crop)

    rows = [int(row) for row in order]
    images = ordered_map(one, rows) if workers else map(one, rows)
    total, batch = 0, []
    for image in images:
        batch.append(image)
        if len(batch) == BATCH:
            total += int(np.stack(batch).shape[0])
            batch.clear()
    return total + len(batch)


def cached_epoch(store: ImageStore, order: NDArray[np.int64]) -> int:
    return sum(len(store[order[i : i + BATCH]]) for i in range(0, len(order), BATCH))


def timed(epoch: Callable[[], int]) -> float:
    """Images a second."""
    start = time.perf_counter()
    count = epoch()
    return count / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path")
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=2, help="epochs timed from the cache")
    saved.option(parser)
    arguments = parser.parse_args()
    table = load_table(arguments.path)
    if not isinstance(table.source, EncodedSource):
        parser.error("this data set has no image files to decode")
    with tempfile.TemporaryDirectory() as cache:

        def order(rows: int, epoch: int) -> NDArray[np.int64]:
            return permutation(0, "benchmark", epoch, rows)

        def first() -> int:
            _, store = load_images(table, arguments.size, cache, quiet=True)
            return cached_epoch(store, order(len(store), 0))

        figures = {"decode-once cache, first epoch (builds it)": timed(first)}
        good, store = load_images(table, arguments.size, cache, quiet=True)
        for epoch in range(1, arguments.epochs + 1):
            figures[f"decode-once cache, epoch {epoch + 1}"] = timed(
                lambda epoch=epoch: cached_epoch(store, order(len(store), epoch))
            )
        name = f"Pillow every epoch, {threads()} threads"
        figures[name] = timed(lambda: decode_epoch(good, arguments.size, order(len(good), 1), True))
        figures["Pillow every epoch, 1 thread"] = timed(
            lambda: decode_epoch(good, arguments.size, order(len(good), 1), False)
        )
    report = RichTable(title=f"{len(good)} images at {arguments.size}×{arguments.size}")
    report.add_column("loader")
    report.add_column("images/s", justify="right")
    report.add_column("against Pillow with threads", justify="right")
    lines = [[n, f"{s:,.0f}", f"{s / figures[name]:.1f}×"] for n, s in figures.items()]
    for line in lines:
        report.add_row(*line)
    Console().print(report)
    header = [str(column.header) for column in report.columns]
    saved.save(
        arguments.save,
        seeds=[0],
        selection="",
        tables={"": saved.table(header, lines)},
        about=str(report.title),
    )


if __name__ == "__main__":
    main()
