"""Peak memory of `d2cp scan` as a data set grows; the lenses learn from a bounded number of images.

    python benchmarks/scan_memory.py [--images 10000 20000 40000 80000] [--data cmnist]

Each line is a process of its own that scans the first N images, 8 of 10 for training (the lenses
learn from 20,000 at most), pictures and page included. `resident` is the process's peak as the
system counts it, `above the start` what is left of it once torch and the rest are loaded.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def worker(data: str, images: int) -> dict[str, float]:
    import sklearn.linear_model  # noqa: F401
    import torch  # noqa: F401

    from d2cp.api import scan
    from d2cp.config.request import Request

    start = _peak()
    limits = {"train_limit": images * 8 // 10, "val_limit": images // 10}
    limits["test_limit"] = images // 10
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as out:
        scan(data, out=Path(out) / "run", config=Request(overrides=limits), quiet=True)
    return {"seconds": time.perf_counter() - began, "start": start, "peak": _peak()}


def _peak() -> float:
    """Mebibytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="cmnist")
    parser.add_argument("--images", type=int, nargs="+", default=[10000, 20000, 40000, 80000])
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        print(json.dumps(worker(given.data, given.worker)))
        return
    print(f"{'images':>8}{'learnt from':>13}{'seconds':>9}{'resident':>12}{'above the start':>18}")
    for images in given.images:
        command = [sys.executable, __file__, "--data", given.data, "--worker", str(images)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
        found = json.loads(done.stdout.splitlines()[-1])
        above = found["peak"] - found["start"]
        learnt = min(images * 8 // 10, 20_000)
        print(
            f"{images:8}{learnt:13}{found['seconds']:9.0f}{found['peak']:8.0f} MiB"
            f"{above:14.0f} MiB",
            flush=True,
        )


if __name__ == "__main__":
    main()
