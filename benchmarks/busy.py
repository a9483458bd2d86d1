"""Training steps on free cores, beside one busy neighbour, and beside two.

    python benchmarks/busy.py                      # stage 1 of the demo
    python benchmarks/busy.py --work stage2        # its stage 2
    python benchmarks/busy.py --work vit-s         # a ViT-S/16 at 224 pixels under prompts

A neighbour is a process that computes without pause in one thread. Rows: as d2cp runs by itself;
one thread; all cores, waiting passively; all cores as PyTorch is without d2cp. Images are noise.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import saved

# It ends when this process does, whatever ended that: then its standard input closes.
NEIGHBOUR = """
import os, sys, threading
import numpy as np
end = lambda: (sys.stdin.read(), os._exit(0))
threading.Thread(target=end, daemon=True).start()
a = np.ones((256, 256))
while True:
    a = np.tanh(a @ a)
"""
ROWS: dict[str, dict[str, str]] = {
    "as d2cp runs": {},
    "one thread": {"OMP_NUM_THREADS": "1"},
    "all cores, passive": {"OMP_NUM_THREADS": str(os.cpu_count()), "OMP_WAIT_POLICY": "passive"},
    "all cores, spinning": {"OMP_NUM_THREADS": str(os.cpu_count()), "OMP_WAIT_POLICY": "active"},
}
HEADER = ("", "free", "one neighbour", "two neighbours")
WARM_UP = 5  # steps that are not counted


class OverError(Exception):
    """The time is over."""


class Clock:
    """A progress bar that only measures; ends the training when its time is over."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.steps, self.images, self.began = seconds, 0, 0, 0.0

    @contextmanager
    def __call__(self, *_: Any, **__: Any) -> Iterator[Clock]:
        yield self

    def step(self, images: int = 0, **_: Any) -> None:
        self.steps += 1
        if self.steps == WARM_UP:
            self.began = time.perf_counter()
        elif self.steps > WARM_UP:
            self.images += images
            if time.perf_counter() - self.began > self.seconds:
                raise OverError

    def rate(self) -> float:
        return self.images / (time.perf_counter() - self.began)


def train(work: str, clock: Clock) -> None:
    from d2cp.config import load_config
    from d2cp.disentangle.concept_training import train_concepts

    draw = np.random.default_rng(0)
    config = load_config("photo-cpu" if work == "photos" else "demo")
    if work in ("concepts", "photos"):
        size = config.disentangle.size
        images = draw.integers(256, size=(1000, size, size, 3), dtype=np.uint8)
        settings = dataclasses.replace(
            config.disentangle, guide=dataclasses.replace(config.disentangle.guide, concepts=0)
        )
        rows, y = np.arange(1000), draw.integers(2, size=1000)
        train_concepts(images, rows, y, settings, 0, progress=clock)
        return
    from transformers import ViTConfig

    from d2cp.backbone import backbone_from_config, load_backbone
    from d2cp.debias import loop
    from d2cp.debias.labels import Labels
    from d2cp.debias.train import train_d2cp
    from full_size import Noise

    settings2, backbone = config.debias, load_backbone("embedded")
    if work == "vit-s":
        wide = {"hidden_size": 384, "intermediate_size": 1536, "num_attention_heads": 6}
        backbone = backbone_from_config(ViTConfig(image_size=224, patch_size=16, **wide))
        settings2 = dataclasses.replace(settings2, image_size=224, resize=224, batch_size=16)
    settings2 = dataclasses.replace(settings2, augment=False)
    bits = draw.integers(2, size=(4, 200))
    labels = Labels(
        y=bits[0],
        classes=2,
        train=np.arange(200),
        val=np.arange(0),
        a=bits[1],
        y_xrm=bits[2],
        a_xrm=bits[3],
    )
    loop.progress = clock  # type: ignore[assignment]
    train_d2cp(backbone, Noise(200, settings2.resize), labels, settings2, seed=0)


def worker(work: str, seconds: float) -> None:
    clock = Clock(seconds)
    with suppress(OverError):
        train(work, clock)
    print(clock.rate())


def measure(arguments: argparse.Namespace, environment: dict[str, str], neighbours: int) -> float:
    free = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_", "MKL_"))}
    one = {**free, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    beside = [
        subprocess.Popen([sys.executable, "-c", NEIGHBOUR], env=one, stdin=subprocess.PIPE)
        for _ in range(neighbours)
    ]
    try:
        words = [sys.executable, __file__, "--work", arguments.work, "--worker"]
        words += ["--seconds", str(arguments.seconds)]
        done = subprocess.run(
            words, env={**free, **environment}, stdout=subprocess.PIPE, check=True, text=True
        )
        return float(done.stdout.split()[-1])
    finally:
        for process in beside:
            process.kill()
            process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    works = ["concepts", "photos", "stage2", "vit-s"]
    parser.add_argument("--work", choices=works, default=works[0])
    parser.add_argument("--seconds", type=float, default=6.0, help="measured, each")
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS))
    saved.option(parser)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        from d2cp.core.threads import wait_passively

        wait_passively()
        return worker(arguments.work, arguments.seconds)
    title = f"{arguments.work}: images/s on {os.cpu_count()} cores (share of free)"
    table, lines = Table(title=title), []
    for heading in HEADER:
        table.add_column(heading, justify="right" if heading else "left")
    for row in arguments.rows:
        rates = [measure(arguments, ROWS[row], neighbours) for neighbours in (0, 1, 2)]
        shares = [f"{rate:.0f} ({100 * rate / rates[0]:.0f}%)" for rate in rates]
        lines.append((row, *shares))
        table.add_row(*lines[-1])
    Console().print(table)
    about = f"{arguments.seconds:g} s a cell; {title}"
    made = {"": saved.table(HEADER, lines)}
    saved.save(arguments.save, seeds=[0], selection="", tables=made, about=about)


if __name__ == "__main__":
    main()
