"""What one step frees the next one takes, without a page that the system clears anew."""

import ctypes
import os
import subprocess
import sys

import pytest

STEPS = """
import resource, sys
from d2cp.core.memory import USERS, hand_back, keep

def step():
    arrays = [bytes([i + 1]) * (24 << 20) for i in range(3)]
    return arrays[-1][0]

def faults(times=10):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(times):
        step()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // times

def resident():
    return int(open("/proc/self/statm").read().split()[1])

if sys.argv[1] == "keep":
    keep()
step()
found = faults()
held = resident()
hand_back()
print(found, held - resident())
"""

PAGES = 3 * (24 << 20) // 4096  # that a step's arrays take


def measured(mode: str, **more: str) -> tuple[int, int]:
    names = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")
    environment = {k: v for k, v in os.environ.items() if k not in names}
    words = [sys.executable, "-c", STEPS, mode]
    said = subprocess.run(words, env=environment | more, capture_output=True, text=True, check=True)
    faults, given = said.stdout.split()
    return int(faults), int(given)


needs_glibc = pytest.mark.skipif(
    not sys.platform.startswith("linux") or not hasattr(ctypes.CDLL(None), "mallopt"),
    reason="the C library is not glibc",
)


@needs_glibc
def test_a_step_takes_what_the_one_before_freed_until_it_is_handed_back():
    faults, given = measured("keep")
    assert faults < PAGES / 20
    assert given > PAGES / 2
    plainly, _ = measured("as it is")
    assert plainly > PAGES / 2


@needs_glibc
def test_what_the_user_has_set_stays():
    faults, _ = measured("keep", MALLOC_MMAP_THRESHOLD_="131072")
    assert faults > PAGES / 2
