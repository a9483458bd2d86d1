"""What the C library does with memory that is free inside the process."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Any

TRIM, MAPPED = -1, -3  # glibc's numbers of M_TRIM_THRESHOLD and M_MMAP_THRESHOLD
KEPT = 1 << 28
"""Bytes that may lie free; an array larger than that has pages of its own, as before."""
MOST_OF_OLD = 32 << 20
"""Larger arrays than this cannot be kept by versions of glibc that know of a limit."""
USERS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


def keep() -> None:
    """For a process of d2cp's own, before it computes: what one step frees the next one takes.

    Left alone, the C library gives large arrays back and takes them again, and the system clears
    every page anew: thousands a step. Where the user has set these things, or it is not glibc,
    nothing happens."""
    if any(name in os.environ for name in USERS):
        return
    option = _of_libc("mallopt")
    if option is not None and (option(MAPPED, KEPT) or option(MAPPED, MOST_OF_OLD)):
        option(TRIM, KEPT)


def hand_back() -> None:
    """For after work on many rows: the C library would keep what they took. Where it cannot be
    asked (it is not glibc), nothing happens."""
    trim = _of_libc("malloc_trim")
    if trim is not None:
        trim(0)


def _of_libc(name: str) -> Callable[..., Any] | None:
    try:
        found: Callable[..., Any] = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):
        return None
    return found
