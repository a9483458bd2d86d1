"""The size of the image cache: what lies in it, and who has to go when it is full.

An entry's manifest is held by everyone who reads its pixels, and its time stamp is that of the last
opening. The least recently used go first; what is in use stays, whatever the limit.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path

from d2cp.core.locks import unused
from d2cp.errors import ConfigError

LIMIT = "D2CP_CACHE_GB"
DEFAULT_GB = 50.0
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Cached:
    """One data set at one size."""

    path: Path
    size: int  # bytes
    images: int
    side: int
    used: float  # seconds since the epoch


def limit_bytes() -> int:
    """$D2CP_CACHE_GB, else 50 GB; 0 is no limit."""
    text = os.environ.get(LIMIT, str(DEFAULT_GB))
    try:
        limit = float(text)
    except ValueError:
        limit = -1.0
    if not 0 <= limit < float("inf"):
        raise ConfigError(f"{LIMIT}={text}", expected="a number of gigabytes; 0 for no limit")
    return int(limit * 1e9)


def entries(cache_dir: Path) -> list[Cached]:
    """All whole entries, the least recently used first."""
    found = []
    for manifest in (cache_dir / "images").glob(f"*/[!.]*/{MANIFEST}"):
        try:
            facts = json.loads(manifest.read_text(encoding="utf-8"))
            size = sum(file.stat().st_size for file in manifest.parent.iterdir())
            used = manifest.stat().st_mtime
            side = int(facts["settings"]["size"])
            found.append(Cached(manifest.parent, size, int(facts["count"]), side, used))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # removed or damaged meanwhile
    return sorted(found, key=lambda entry: (entry.used, str(entry.path)))


def make_room(cache_dir: Path, needed: int, limit: int) -> list[Cached]:
    """Remove entries until `needed` bytes more stay within the limit; returns what was removed."""
    if not limit:
        return []
    lying = entries(cache_dir)
    total, gone = needed + sum(entry.size for entry in lying), []
    for entry in lying:
        if total <= limit:
            break
        if remove(entry):
            total -= entry.size
            gone.append(entry)
    return gone


def remove(entry: Cached) -> bool:
    """Remove an entry unless somebody reads it."""
    try:
        with unused(entry.path / MANIFEST) as free:
            if not free:
                return False
            # Out of sight in one step: nobody finds half an entry.
            hidden = entry.path.with_name(f".gone-{secrets.token_hex(4)}")
            entry.path.rename(hidden)
    except OSError:
        return False
    shutil.rmtree(hidden, ignore_errors=True)
    return True


def mark_used(path: Path) -> None:
    try:
        os.utime(path / MANIFEST)
    except OSError:
        return  # somebody else's cache, read-only: its owner's business
