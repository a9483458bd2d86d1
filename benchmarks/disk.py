"""A disk that is full at each write of a run in turn, and a real one that is too small.

    python benchmarks/disk.py

Every file, folder and renaming of a run meets "No space left on device" once: the command must say
so, name the file and what to do, leave all finished stages as they were, and go on when there is
space again, to the bits of a run that never met a full disk. Where a memory file system can be
mounted (Linux, as root), the same with real ones of growing size, and a read-only one.
"""

from __future__ import annotations

import argparse
import errno
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kill import contents, differences
from kill_jobs import JOBS
from killed_process import (
    attempt,
    checkpoints_every_step,
    ended,
    import_everything,
    kill_group,
    start,
)

RANDOM = re.compile(r"\.[0-9a-f]{8}\.tmp$|writing-[0-9a-f]{8}")
WRITES = re.compile(r"[wax+]")
SIZES = (8, 40, 100, 300, 700, 1500, 2500, 4000)  # kB; the run takes about 4 MB


class Full:
    """An audit hook: of the writes below `root` whose name was not met before, the `every`-th
    fails."""

    def __init__(self, root: Path, seen: set[str], tell: int, every: int) -> None:
        self.root, self.seen, self.tell, self.done = str(root), set(seen), tell, False
        self.left = every
        sys.addaudithook(self)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.done or not _writes(event, arguments):
            return
        path = os.fsdecode(arguments[0])
        if not path.startswith(self.root):
            return
        name = f"{event} {RANDOM.sub('', path.removeprefix(self.root))}"
        if name in self.seen:
            return
        os.write(self.tell, f"{name}\n".encode())
        self.seen.add(name)
        self.left -= 1
        if not self.left:
            self.done = True
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


def _writes(event: str, arguments: tuple[Any, ...]) -> bool:
    if event == "open":
        mode = arguments[1]
        return not isinstance(arguments[0], int) and bool(mode and WRITES.search(mode))
    return event in ("os.rename", "os.mkdir")


def with_full_disk(
    words: list[str], out: Path, seen: set[str], log: Path, every: int
) -> tuple[int, list[str]]:
    """Exit code, and the names of new writes; the last of `every` has failed."""
    ours, theirs = os.pipe()
    child = start([*words, "--out", str(out)], log, before=lambda: Full(out, seen, theirs, every))
    os.close(theirs)
    with os.fdopen(ours) as told:
        names = told.read().splitlines()
    code = None
    while code is None:
        code = ended(child)
    kill_group(child)
    return code, names


def each_write(words: list[str], work: Path, every: int) -> list[str]:
    out, log = work / "full", work / "log"
    seen: set[str] = set()
    faults: list[str] = []
    tried = 0
    while True:
        before = _finished(out)
        code, names = with_full_disk(words, out, seen, log, every)
        said = log.read_text(errors="replace")
        seen |= set(names)
        if len(names) < every:
            break
        name, tried = names[-1], tried + 1
        if code not in (3, 5) or "No space left" not in said or "to do:" not in said:
            faults.append(f"{name}: exit {code}: {said[-300:]}")
        now = _finished(out)
        faults += [f"{name}: {file} was lost" for file in before if before[file] != now.get(file)]
    print(f"full disk at {tried} of {len(seen)} writes in turn: {len(faults)} faults", flush=True)
    if code != 0 or (wrong := differences(contents(work / "alone"), contents(out))):
        faults.append(f"in the end: exit {code}, {wrong if code == 0 else said[-300:]}")
    else:
        print("with space again: every artifact identical to the undisturbed run's")
    return faults


def _finished(out: Path) -> dict[str, str]:
    """Files of finished stages."""
    found = contents(out) if out.is_dir() else {}
    stages = {
        p.parent.name for p in out.glob("*/manifest.json") if not p.parent.name.startswith(".")
    }
    return {k: v for k, v in found.items() if Path(k).parts[0] in stages}


@contextmanager
def mounted(folder: Path, kilobytes: int) -> Iterator[bool]:
    """A memory file system of that size; False where none can be mounted."""
    folder.mkdir(exist_ok=True)
    size = f"size={kilobytes}k"
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", size, "d2cp-disk", str(folder)], capture_output=True
    )
    try:
        yield made.returncode == 0
    finally:
        if made.returncode == 0:
            subprocess.run(["umount", "-l", str(folder)], check=True)


def real_disks(words: list[str], work: Path) -> list[str]:
    faults = []
    log, disk = work / "log", work / "disk"
    with mounted(disk, SIZES[0]) as real:
        if not real:
            print("real disks: left out, no memory file system can be mounted here")
            return []
        for size in SIZES:
            subprocess.run(["mount", "-o", f"remount,size={size}k", str(disk)], check=True)
            code = attempt(words, disk / "run", log, 1e9, False)
            said = log.read_text(errors="replace")
            if code != 0 and ("No space left" not in said or "to do:" not in said):
                faults.append(f"a disk of {size} kB: exit {code}: {said[-300:]}")
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        code = attempt(words, disk / "run", log, 1e9, False)
        wrong = differences(contents(work / "alone"), contents(disk / "run"))
        if code != 0 or wrong:
            faults.append(f"with space again: exit {code}, {wrong[:5]} differ")
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        code = attempt(words, disk / "run", log, 1e9, False)
        said = log.read_text(errors="replace")
        if code != 5 or "to do:" not in said:
            faults.append(f"a read-only disk: exit {code}: {said[-300:]}")
    print(f"real disks of {len(SIZES)} sizes and a read-only one: {len(faults)} faults")
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--job", default="features", choices=list(JOBS))
    parser.add_argument("--every", type=int, default=1, help="fail at every N-th new write only")
    given = parser.parse_args()
    import_everything()
    checkpoints_every_step()
    words = JOBS[given.job]
    with tempfile.TemporaryDirectory(prefix="d2cp-disk-") as folder:
        work = Path(folder)
        if attempt(words, work / "alone", work / "log", 1e9, False) != 0:
            print((work / "log").read_text())
            return 1
        faults = [*each_write(words, work, given.every), *real_disks(words, work)]
    for text in faults:
        print(f"  fault: {text}")
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
