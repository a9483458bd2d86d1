"""`d2cp check` and the loader that training uses, as a data set grows: seconds and peak memory.

    python benchmarks/many_images.py --images 10000 50000 200000

Image files of 8x8 pixels, each different, in a metadata.csv set; the cache is built at 16 pixels in
a fresh folder, then one shuffled epoch is read through the loader.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

import saved

TITLES = ("images", "check --fast", "open the table", "build the cache", "read an epoch")
ABOUT = "seconds / CPU seconds (peak MiB of the process; its own MiB then, without mapped pixels)"
# MiB by the system's count. `ru_maxrss` would be that of the parent where it had more.
STATUS = """
def status(key):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key)) / 1024
"""
READ = f"""{STATUS}
import gc, json, resource, sys, time
import numpy as np
from d2cp.core.rng import permutation
from d2cp.data import load_images, load_table

def memory():
    # Peak, and what is the process's own now: the pixels' file is mapped, not read into it.
    gc.collect()
    return status("VmHWM"), status("RssAnon")

def now():
    of_all = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter(), time.process_time() + of_all.ru_utime + of_all.ru_stime

times = [now()]
table = load_table(sys.argv[1])
times.append(now())
before = memory()
table, store = load_images(table, 16, sys.argv[2], quiet=True)
times.append(now())
built = memory()
order = permutation(0, "benchmark", 0, len(store))
for start in range(0, len(order), 64):
    store[order[start : start + 64]]
times.append(now())
seconds = np.diff(times, axis=0).tolist()
print(json.dumps(dict(seconds=seconds, peaks=[before, built, memory()])))
"""


def make(folder: Path, count: int) -> None:
    """`count` different images and their table. The last 192 bytes of such a BMP are its pixels."""
    file = io.BytesIO()
    Image.new("RGB", (8, 8)).save(file, "BMP")
    header = file.getvalue()[:-192]
    pixels = np.random.default_rng(0).bytes(192 * count)
    lines = ["filename,y,split"]
    for i in range(count):
        part, name = f"{i // 1000}", f"{i // 1000}/{i}.bmp"
        if i % 1000 == 0:
            (folder / part).mkdir()
        (folder / name).write_bytes(header + pixels[192 * i : 192 * (i + 1)])
        lines.append(f"{name},{i % 2},{('train', 'val', 'test')[max(0, i % 10 - 7)]}")
    (folder / "metadata.csv").write_text("\n".join(lines))


def check(folder: Path) -> tuple[tuple[float, float], tuple[float, ...]]:
    """Seconds, CPU seconds and peak memory of `d2cp check --fast`."""
    code = f"{STATUS}\nimport resource, sys; from d2cp.cli import main\n"
    code += "try: main(['check', sys.argv[1], '--fast', '--json'])\nexcept SystemExit: pass\n"
    code += "used = resource.getrusage(resource.RUSAGE_SELF)\n"
    code += "print(used.ru_utime + used.ru_stime, status('VmHWM'))"
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, check=True, text=True
    )
    cpu, peak = (float(word) for word in done.stdout.split()[-2:])
    return (time.perf_counter() - began, cpu), (peak,)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, nargs="+", default=[10_000, 50_000, 200_000])
    saved.option(parser)
    given = parser.parse_args()
    print(" | ".join(TITLES))
    print(ABOUT)
    lines = []
    for count in given.images:
        with tempfile.TemporaryDirectory() as name:
            data, cache = Path(name) / "data", Path(name) / "cache"
            data.mkdir()
            make(data, count)
            cells = [check(data)]
            done = subprocess.run(
                [sys.executable, "-c", READ, str(data), str(cache)],
                stdout=subprocess.PIPE,
                check=True,
                text=True,
            )
            found = json.loads(done.stdout)
            cells += zip(found["seconds"], found["peaks"], strict=True)
            shown = [
                f"{wall:.1f} / {cpu:.1f} ({', '.join(f'{part:.0f}' for part in memory)})"
                for (wall, cpu), memory in cells
            ]
            lines.append([f"{count:,}", *shown])
            print(" | ".join(lines[-1]), flush=True)
    saved.save(
        given.save,
        seeds=[0],
        selection="",
        tables={"": saved.table(TITLES, lines)},
        about=ABOUT,
    )


if __name__ == "__main__":
    main()
