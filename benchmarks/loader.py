"""Loader throughput: decoding with Pillow in every epoch against the decode-once cache.

    python benchmarks/loader.py PATH [--size 128] [--cpus 1 2] [--rounds 3]

All deliver uint8 squares at the working size, shuffled but for the first epoch, which builds the
cache in a fresh folder: it reads, digests and checks each file, decodes it, writes the pixels. Each
number of CPUs is what this process may use (its affinity); rounds alternate, medians are shown.
"""

from __future__ import annotations

import argparse
import io
import os
import statistics
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
AT_ONCE = 4
HEADER = ("loader", "CPUs", "images/s", "images per CPU second", "against Pillow: time, CPU")


def decode_epoch(table: Table, size: int, order: NDArray[np.int64]) -> int:
    """One epoch as a usual loader does it: every image decoded again, in as many threads as there
    are CPUs."""
    source = table.source
    assert isinstance(source, EncodedSource)

    def one(row: int) -> NDArray[np.uint8]:
        image = Image.open(io.BytesIO(source.read(row))).convert("RGB")
        return to_square(image, size, centre_crop=source.centre_crop)

    rows = [int(row) for row in order]
    images = ordered_map(one, rows, AT_ONCE) if threads() > 1 else map(one, rows)
    total, batch = 0, []
    for image in images:
        batch.append(image)
        if len(batch) == BATCH:
            total += int(np.stack(batch).shape[0])
            batch.clear()
    return total + len(batch)


def cached_epoch(store: ImageStore, order: NDArray[np.int64]) -> int:
    return sum(len(store[order[i : i + BATCH]]) for i in range(0, len(order), BATCH))


def timed(epoch: Callable[[], int]) -> tuple[float, float]:
    """Images a second, and a CPU second."""
    wall, cpu = time.perf_counter(), time.process_time()
    count = epoch()
    return count / (time.perf_counter() - wall), count / (time.process_time() - cpu)


def measure(table: Table, size: int, rounds: int) -> dict[str, tuple[float, float]]:
    """Medians over the rounds, by what was done."""
    found: dict[str, list[tuple[float, float]]] = {}

    def built(cache: str) -> int:
        return len(load_images(table, size, cache, quiet=True)[1])

    for number in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            first = timed(lambda cache=cache: built(cache))
            good, store = load_images(table, size, cache, quiet=True)
            order = permutation(0, "benchmark", number, len(store))
            cached = timed(lambda s=store, o=order: cached_epoch(s, o))
            pillow = timed(lambda g=good, o=order: decode_epoch(g, size, o))
        found.setdefault("Pillow, every epoch", []).append(pillow)
        found.setdefault("cache, first epoch (builds it)", []).append(first)
        found.setdefault("cache, later epochs", []).append(cached)
    return {
        name: (statistics.median(wall), statistics.median(cpu))
        for name, (wall, cpu) in ((name, zip(*each, strict=True)) for name, each in found.items())
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path")
    parser.add_argument("--size", type=int, default=128)
    allowed = sorted(os.sched_getaffinity(0))
    parser.add_argument("--cpus", type=int, nargs="+", default=[1, len(allowed)])
    parser.add_argument("--rounds", type=int, default=3)
    saved.option(parser)
    given = parser.parse_args()
    table = load_table(given.path)
    if not isinstance(table.source, EncodedSource):
        parser.error("this data set has no image files to decode")
    lines = []
    for cpus in dict.fromkeys(given.cpus):
        os.sched_setaffinity(0, allowed[:cpus])
        rates = measure(table, given.size, given.rounds)
        plain = rates["Pillow, every epoch"]
        for name, (wall, cpu) in rates.items():
            against = f"{wall / plain[0]:.2f}×, {cpu / plain[1]:.2f}×"
            lines.append([name, str(cpus), f"{wall:,.0f}", f"{cpu:,.0f}", against])
    os.sched_setaffinity(0, allowed)
    title = f"{len(table)} images at {given.size}×{given.size}, median of {given.rounds} rounds"
    report = RichTable(title=title)
    for name in HEADER:
        report.add_column(name, justify="left" if name == HEADER[0] else "right")
    for line in lines:
        report.add_row(*line)
    Console().print(report)
    saved.save(
        given.save, seeds=[0], selection="", tables={"": saved.table(HEADER, lines)}, about=title
    )


if __name__ == "__main__":
    main()
