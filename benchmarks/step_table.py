"""The stage 2 step as a table: ours beside two plain VPT passes and beside one plain branch.

    python benchmarks/step_table.py                        # every row
    python benchmarks/step_table.py --rows embedded --cpu-time

Each cell is a process of its own: images/s (the median of some rounds), what a step adds to the
process's memory at its highest, the arithmetic of a step (torch's own count) over its time, and
that of the linear layers' matrix products over theirs. Both are given as a share of what a large
matrix product reaches in the same process. In brackets ours over that row, for the arithmetic that
row over ours: the speed that as many FLOP/s would give. Under a backbone's rows stands the least
arithmetic of any step that computes the same numbers (`least_gflop`), and the speed which that
allows at most.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

import saved
from d2cp.config.debias import DebiasConfig
from d2cp.core.memory import keep
from step_speed import dual_step, models, plain_step

ROWS = {  # backbone, pixels, images a step, prompts a layer
    "ViT-B/16, L=10": ("vit-b16-random", 224, 8, 10),
    "ViT-B/16, L=20": ("vit-b16-random", 224, 8, 20),
    "ViT-S/16, L=10": ("vit-s16-random", 224, 16, 10),
    "embedded": ("embedded", 28, 128, 10),
}
WAYS = {"ours": "dual-branch step", "two": "two plain VPT passes", "one": "one plain branch"}
BOUND = "least of an exact step, against two passes"
TITLES = ("", "", "images/s", "MiB", "GFLOP", "of the peak", "linear layers", "GFLOP/s")
LINEAR = (torch.ops.aten.addmm, torch.ops.aten.mm)


def step_of(way: str, row: str, attention: str, keep_patches: float) -> Callable[[], None]:
    name, size, batch, length = ROWS[row]
    backbone, vit = models(name, size, attention)
    backbone.thinned(keep_patches)
    config = DebiasConfig(prompt_length=length)
    images = torch.rand(batch, 3, size, size)
    if way == "ours":
        return dual_step(backbone, config, images)
    return plain_step(vit, backbone, config, images, branches=2 if way == "two" else 1)


def least_gflop(row: str) -> float:
    """Of two branches' exact step with frozen weights, in linear layers: forwards and backwards
    through all blocks but the first and the last; in the first the output projection and the MLP
    (its inputs are the same for both branches and need no gradient, so that embedding, queries,
    keys and values are made once); in the last nothing but what CLS reads, counted as nothing."""
    name, size, batch, _ = ROWS[row]
    backbone, _ = models(name, size)
    down, across = backbone.grid(size, size)
    tokens, modules = down * across + 1, backbone.blocks[0].modules()
    block = sum(m.weight.numel() for m in modules if isinstance(m, torch.nn.Linear))
    inputs = backbone.blocks[0].qkv.weight.numel()  # type: ignore[union-attr, operator]
    embedding = 3 * backbone.patch_size**2 * backbone.width
    branch = 2 * ((backbone.depth - 2) * block + block - inputs)
    return 2 * batch * tokens * (2 * branch + inputs + embedding) / 1e9


def matmul_peak(clock: Callable[[], float]) -> float:
    """FLOP/s of the best of some products of 1024 × 1024 matrices."""
    a, best = torch.rand(1024, 1024), float("inf")
    for _ in range(8):
        began = clock()
        a @ a
        best = min(best, clock() - began)
    return 2 * 1024**3 / best


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


class LinearLayers(TorchDispatchMode):
    """Time and arithmetic of matrix products, forwards and backwards, by the benchmark's clock."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self.clock, self.seconds, self.flops = clock, 0.0, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket not in LINEAR:
            return func(*args, **(kwargs or {}))
        began = self.clock()
        out = func(*args, **(kwargs or {}))
        self.seconds += self.clock() - began
        left, right = args[-2], args[-1]
        self.flops += 2 * left.shape[0] * left.shape[1] * right.shape[1]
        return out


def linear_rate(step: Callable[[], None], clock: Callable[[], float]) -> float:
    """FLOP/s within the linear layers' matrix products."""
    with LinearLayers(clock) as seen:
        step()
    return seen.flops / seen.seconds


def worker(way: str, row: str, args: argparse.Namespace) -> None:
    clock = time.process_time if args.cpu_time else time.perf_counter
    keep()  # as the command does, for every row
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    peak = matmul_peak(clock)
    step = step_of(way, row, args.attention, args.keep_patches)
    before = resident()
    with FlopCounterMode(display=False) as counted:
        step()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    times = []
    for _ in range(args.rounds):
        began = clock()
        step()
        times.append(clock() - began)
    peak = max(peak, matmul_peak(clock))
    seconds = statistics.median(times)
    found = {
        "rate": ROWS[row][2] / seconds,
        "memory": max(0, memory) / 2**20,
        "share": counted.get_total_flops() / seconds / peak,
        "linear": linear_rate(step, clock) / peak,
        "gflop": counted.get_total_flops() / 1e9,
        "peak": peak / 1e9,
    }
    print(json.dumps(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--cpu-time", action="store_true", help="count CPU seconds: for a machine others use too"
    )
    parser.add_argument(
        "--attention",
        choices=["sdpa", "eager"],
        default="sdpa",
        help="of the plain ways: torch's kernel, or written out, with its maps kept",
    )
    saved.option(parser)
    parser.add_argument(
        "--keep-patches", type=float, default=1.0, help="of ours: debias.keep_patches"
    )
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--worker", nargs=2, metavar=("WAY", "ROW"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return worker(*args.worker, args)
    unit = "CPU seconds" if args.cpu_time else "seconds"
    table = Table(
        title=f"stage 2 step, {args.threads} threads, by {unit}; ours over the plain ways"
    )
    for title in TITLES:
        table.add_column(title, justify="right" if title else "left")
    lines = []
    for row in args.rows:
        found = {}
        for way in args.ways:
            words = [sys.executable, __file__, "--worker", way, row, "--rounds", str(args.rounds)]
            words += ["--threads", str(args.threads), *["--cpu-time"] * args.cpu_time]
            words += ["--attention", args.attention, "--keep-patches", str(args.keep_patches)]
            done = subprocess.run(words, check=True, text=True, stdout=subprocess.PIPE)
            found[way] = json.loads(done.stdout.splitlines()[-1])
        ours = found.get("ours")
        for way, x in found.items():
            ratio, less, fewer = "", "", ""
            if ours and way != "ours":
                ratio = f" ({ours['rate'] / x['rate']:.2f}×)"
                less = f" ({ours['memory'] / max(1, x['memory']):.2f}×)"
                fewer = f" ({x['gflop'] / ours['gflop']:.2f}×)"
            line = (
                row if way == args.ways[0] else "",
                WAYS[way],
                f"{x['rate']:.1f}{ratio}",
                f"{x['memory']:.0f}{less}",
                f"{x['gflop']:.1f}{fewer}",
                f"{100 * x['share']:.0f}%",
                f"{100 * x['linear']:.0f}%",
                f"{x['peak']:.0f}",
            )
            lines.append(line)
            table.add_row(*line)
        # Attention that is written out is counted, torch's kernel is not: only there like is like.
        if "two" in found and args.attention == "sdpa" and args.keep_patches == 1:
            least, plain = least_gflop(row), found["two"]["gflop"]
            bound = ("", BOUND, "", "", f"{least:.1f} ({plain / least:.2f}×)", "", "", "")
            lines.append(bound)
            table.add_row(*bound)
    Console(width=120).print(table)
    about = f"{args.threads} thread(s), by {unit}; in brackets: ours over that row"
    made = {"": saved.table(TITLES, lines)}
    saved.save(args.save, seeds=[0], selection="", tables=made, about=about)


if __name__ == "__main__":
    main()
