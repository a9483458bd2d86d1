"""Names of files and classes are data: how they are shown, and told apart."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable


def visible(text: object) -> str:
    """Text with control and direction marks spelled out, so that a name cannot disguise itself."""
    return "".join(_visible(character) for character in str(text))


def _visible(character: str) -> str:
    # Cc control, Cf format (direction overrides, zero-width), Cs surrogates of undecodable names,
    # Zl and Zp line separators.
    if unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"}:
        return f"[U+{ord(character):04X}]"
    return character


def utf8(name: str) -> str:
    """A file's name as text that can be written: bytes that are no UTF-8 as \\xNN."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def repeated(names: Iterable[str]) -> str | None:
    """The first name that was there before, or None; one look at each."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
