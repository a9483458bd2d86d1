"""Names of files and classes are data: how they are shown."""

from __future__ import annotations

import unicodedata


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
