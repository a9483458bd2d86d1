"""Time and peak memory of each stage as images (N) and concepts (K) grow; few training steps.

    python benchmarks/growth.py --images 2000 10000 50000 --concepts 10 20 40

Coloured digits, preset demo, N for training and a fifth of it in each other split, the steps of the
training loops cut short: what is left grows with the number of images or not at all. Each run is a
process of its own with one thread, so that its CPU seconds are what its stages cost, whoever else
uses the machine. `--plot FILE.svg` draws it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import saved

STAGES = ("data", "disentangle", "mine", "features", "environments", "erm", "debias", "evaluate")
SHORT = ("disentangle.steps=20", "disentangle.guide.steps=20", "environments.steps=100")
SHORT += ("debias.epochs=1", "debias.epoch_size=500")


def worker(images: int, concepts: int) -> dict[str, Any]:
    """Seconds and peak resident memory of each stage of one run."""
    from d2cp.api import run
    from d2cp.config import load_config
    from d2cp.pipeline.context import Context

    found: dict[str, Any] = {}
    make_stage = Context.stage

    def measured(
        self: Context, name: str, inputs: str, make: Callable[[Path], None], **more: Any
    ) -> Path:
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        began, spent = time.perf_counter(), time.process_time()
        folder = make_stage(self, name, inputs, make, **more)
        seconds, cpu = time.perf_counter() - began, time.process_time() - spent
        if name not in found:
            found[name] = {"seconds": seconds, "CPU seconds": cpu, "mebibytes": _peak()}
        return folder

    Context.stage = measured  # type: ignore[method-assign]
    settings = [*SHORT, f"disentangle.concepts={concepts}", f"train_limit={images}"]
    settings += [f"val_limit={images // 5}", f"test_limit={images // 5}"]
    config = load_config("demo", assignments=settings)
    with tempfile.TemporaryDirectory() as out:
        run("cmnist", out=Path(out) / "run", config=config, report=False, quiet=True)
    return found


def _peak() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return float("nan")


def measure(images: int, concepts: int) -> dict[str, Any]:
    words = [sys.executable, __file__, "--worker", str(images), str(concepts)]
    one = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, env=one, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def show(title: str, runs: dict[int, dict[str, Any]]) -> saved.Table:
    table = Table(title=f"{title}: CPU seconds / seconds (peak MiB)")
    lines = []
    table.add_column("stage")
    for value in runs:
        table.add_column(f"{value:,}", justify="right")
    for stage in STAGES:
        of_runs = [run[stage] for run in runs.values()]
        cells = [
            f"{r['CPU seconds']:.1f} / {r['seconds']:.1f} ({r['mebibytes']:.0f})" for r in of_runs
        ]
        table.add_row(stage, *cells)
        lines.append([stage, *cells])
    Console().print(table)
    return saved.table(["stage", *(f"{value:,}" for value in runs)], lines)


def plot(path: Path, runs: dict[int, dict[str, Any]], title: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.5))
    for axis, key in zip(axes, ("CPU seconds", "mebibytes"), strict=True):
        for stage in STAGES:
            axis.plot(list(runs), [r[stage][key] for r in runs.values()], "o-", label=stage)
        axis.set(xlabel=title, ylabel=key)
    axes[0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, nargs="*", default=[2000, 10000, 50000])
    parser.add_argument("--concepts", type=int, nargs="*", default=[10, 20, 40])
    parser.add_argument("--plot", type=Path, help="an SVG or PNG of the growth with N")
    saved.option(parser)
    parser.add_argument("--worker", type=int, nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        print(json.dumps(worker(*given.worker)))
        return
    made = {}
    if given.images:
        runs = {n: measure(n, 20) for n in given.images}
        made["images"] = show("N images, K = 20", runs)
        if given.plot:
            plot(given.plot, runs, "images")
    if given.concepts:
        by_concepts = {k: measure(2000, k) for k in given.concepts}
        made["concepts"] = show("K concepts, N = 2,000", by_concepts)
    about = "CPU seconds / seconds (peak MiB), one thread, training loops cut short"
    saved.save(given.save, seeds=[0], selection="", tables=made, about=about)


if __name__ == "__main__":
    main()
