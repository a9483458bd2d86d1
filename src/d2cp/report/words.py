"""Plain words for figures and names."""

from __future__ import annotations

import math
from typing import Any

from d2cp.core.text import visible

SPLIT_WORDS = {
    "train": "training",
    "val": "validation",
    "test": "test",
    "test_balanced": "balanced test",
}


def percent(value: float | None) -> str:
    """An accuracy or a share; one decimal, as intervals rarely bear more."""
    return "–" if value is None or math.isnan(value) else f"{100 * value:.1f}%"


def interval(bounds: tuple[float, float] | None) -> str:
    return "" if bounds is None else f"{100 * bounds[0]:.1f}–{100 * bounds[1]:.1f}"


def count(value: int, word: str, plural: str = "") -> str:
    return f"{value:,} {word if value == 1 else plural or word + 's'}"


def duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.0f} kB"


def phrase(key: str) -> str:
    """`train_weighted_mean` → `Train weighted mean`."""
    words = key.replace("_", " ").replace(".", ": ").strip()
    return words[:1].upper() + words[1:]


def figure(value: Any) -> str:
    """A value of a JSON artifact, as text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(figure(item) for item in value) or "none"
    return visible(value)


def shell_lines(command: str) -> str:
    """A long command with each option on its own line, still one command when pasted."""
    if len(command) <= 76 or "'" in command:  # a quoted word may hold what looks like an option
        return command
    return command.replace(" --", " \\\n    --")


def flatten(value: Any, prefix: str = "") -> list[tuple[str, str]]:
    """Nested mappings as (dotted key, text), in order."""
    if isinstance(value, dict):
        rows: list[tuple[str, str]] = []
        for key, item in value.items():
            rows += flatten(item, f"{prefix}.{key}" if prefix else str(key))
        return rows
    if isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        rows = []
        for index, item in enumerate(value):
            rows += flatten(item, f"{prefix}[{index}]")
        return rows
    return [(visible(prefix), figure(value))]
