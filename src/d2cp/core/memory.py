"""Memory that is free inside the process goes back to the system."""

from __future__ import annotations

import ctypes


def hand_back() -> None:
    """For after work on many rows: the C library would keep what they took. Where it cannot be
    asked (it is not glibc), nothing happens."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return
    trim(0)
