"""Changed inputs for every reader of files that come from elsewhere.

    python benchmarks/fuzz.py --inputs 100000

Prints, for each reader, how many inputs were read, how many refused in the package's own words, and
every other exception; the slowest input, the peak of memory, and files that were opened outside the
folder the reader was given. Exit code 0 only when there is none of those and no input took 2 s (of
the processor) or had no end.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from d2cp.data.images import UnreadableError
from d2cp.errors import D2CPError
from damage import command
from fuzz_readers import READERS
from kill_jobs import SMALL
from small_data import write_digits

SLOW = 2.0  # seconds
GIVE_UP = 20  # seconds after which an input is interrupted


class Watch:
    """Files opened outside the places a reader may look at."""

    def __init__(self) -> None:
        self.root: str | None = None
        self.outside: Counter[str] = Counter()
        packages = {p for p in sys.path if p} | {sys.prefix, sys.base_prefix}
        self.known = tuple(os.path.realpath(p) for p in packages)
        sys.addaudithook(self)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or self.root is None or isinstance(arguments[0], int):
            return
        name = os.fsdecode(arguments[0])
        if not os.path.isabs(name) and not os.path.lexists(name):
            return  # within a folder that is open, as `rmtree` goes: not told which
        path = os.path.realpath(name)
        if not path.startswith((self.root, *self.known, "/proc/", "/dev/", "/sys/")):
            self.outside[path] += 1


@dataclass
class Outcome:
    read: int = 0
    refused: int = 0
    foreign: dict[str, str] = field(default_factory=dict)
    foreign_count: int = 0
    slowest: float = 0.0
    slowest_input: str = ""


class Patience:
    """Interrupts an input that has no end. One that was only put to sleep, with this whole process,
    gets the time once more."""

    def __init__(self) -> None:
        self.rung = 0
        signal.signal(signal.SIGALRM, self._ring)

    def begin(self) -> None:
        self.rung = 0
        signal.alarm(GIVE_UP)

    def _ring(self, *_: object) -> None:
        self.rung += 1
        if self.rung > 1:
            raise TimeoutError(f"no end after {GIVE_UP} s")
        signal.alarm(GIVE_UP)


def fuzz(name: str, folder: Path, run: Path, inputs: int, seed: int, watch: Watch) -> Outcome:
    prepare, read, _ = READERS[name]
    folder.mkdir()
    prepare(folder, run)
    outcome, patience = Outcome(), Patience()
    watch.root = os.path.realpath(folder)
    for index in range(inputs):
        draw = random.Random(f"{seed}/{name}/{index}")
        patience.begin()
        began = time.process_time()  # its own work: a busy machine is slow, not wrong
        try:
            read(folder, draw)
            outcome.read += 1
        except (D2CPError, UnreadableError):
            outcome.refused += 1
        except Exception as error:
            outcome.foreign_count += 1
            frames = traceback.extract_tb(error.__traceback__)
            own = [frame for frame in frames if "d2cp" in frame.filename] or frames
            place = f"{Path(own[-1].filename).name}:{own[-1].lineno}"
            kind = f"{type(error).__name__} at {place}"
            outcome.foreign.setdefault(kind, f"{seed}/{name}/{index}: {str(error)[:160]}")
        signal.alarm(0)
        took = time.process_time() - began
        if took > outcome.slowest:
            outcome.slowest, outcome.slowest_input = took, f"{seed}/{name}/{index}"
    watch.root = None
    return outcome


def small_run(folder: Path) -> Path:
    """A finished run whose artifacts are changed, and in it the stage of a scan."""
    digits = write_digits(folder / "digits")
    words = [word for k, v in SMALL.items() for word in ("--set", f"{k}={v}")]
    words += ["--set", "debias.tier='features'", "--quiet", "--cache", str(folder / "cache")]
    for command_ in (
        ("run", "cmnist", "--out", folder / "run", *words),
        ("scan", digits, "--out", folder / "scan", "--quiet", "--cache", folder / "cache"),
    ):
        code, said = command(*command_)
        if code != 0:
            raise SystemExit(said)
    (folder / "scan" / "scan").rename(folder / "run" / "scan")
    return folder / "run"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--readers", default=",".join(READERS))
    parser.add_argument("--run", type=Path, help="a finished run, instead of a new small one")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen = given.readers.split(",")
    shares = {name: READERS[name][2] for name in chosen}
    watch, bad, total = Watch(), False, 0
    with tempfile.TemporaryDirectory(prefix="d2cp-fuzz-") as temporary:
        work = Path(temporary)
        run = given.run or small_run(work)
        for name in chosen:
            count = max(1, given.inputs * shares[name] // sum(shares.values()))
            began, before = time.perf_counter(), _peak()
            found = fuzz(name, work / name, run, count, given.seed, watch)
            seconds = time.perf_counter() - began
            total += count
            bad |= bool(found.foreign) or found.slowest >= SLOW
            print(
                f"{name}: {count:,} inputs in {seconds:.0f} s, {found.read:,} read, "
                f"{found.refused:,} refused, {found.foreign_count} unexplained; slowest "
                f"{found.slowest:.2f} s ({found.slowest_input}); peak memory {_peak():.0f} MB, "
                f"{_peak() - before:.0f} MB of it here",
                flush=True,
            )
            for kind, example in found.foreign.items():
                print(f"  unexplained: {kind}: {example}", flush=True)
    for path, times in watch.outside.most_common(5):
        print(f"  opened outside: {path}, {times} times")
    print(f"all: {total:,} inputs, {sum(watch.outside.values())} files opened outside the root")
    return 1 if bad or watch.outside else 0


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    raise SystemExit(main())
