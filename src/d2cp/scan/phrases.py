"""A person's file of words: one word or phrase a line, checked before anything long starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from d2cp.backbone import load_backbone
from d2cp.backbone.identity import backbone_key, resolved
from d2cp.backbone.text_tower import ClassText, TextTower
from d2cp.core.files import bounded_text, fingerprint
from d2cp.core.text import visible
from d2cp.errors import DataError

TEMPLATE = "a photo of {}"
MOST = 2000
"""Phrases of a file."""
MAX_BYTES = 2**20
SHOWN = 60
"""Characters of a phrase in an error."""


@dataclass(frozen=True)
class Phrase:
    line: int
    text: str

    @property
    def prompt(self) -> str:
        return TEMPLATE.format(self.text)


@dataclass(frozen=True)
class Phrases:
    """Phrases that a CLIP can read; `identity` follows from them, its weights and tokenizer."""

    file: str
    texts: tuple[str, ...]
    backbone: str
    identity: str

    def vectors(self) -> ClassText:
        return TextTower.load(self.backbone).encode([TEMPLATE.format(t) for t in self.texts])


def open_phrases(file: Path | str, backbone: str) -> Phrases:
    """The file for this CLIP; an error where either cannot be used."""
    found = read_phrases(Path(file))
    place = resolved(backbone)
    load_backbone(place)  # its checks come before a text tower is made of the same folder
    tokens = _tokens(found, TextTower.load(place), Path(file))
    texts = tuple(phrase.text for phrase in found)
    identity = fingerprint([TEMPLATE, texts, tokens, backbone_key(place)])
    return Phrases(str(file), texts, place, identity)


def read_phrases(file: Path) -> list[Phrase]:
    """Blank lines, lines that start with # and phrases that were there before are skipped."""
    try:
        text = bounded_text(file, MAX_BYTES).removeprefix("\ufeff")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _unusable(f"the words of {file} cannot be read: {reason}") from error
    found: dict[str, Phrase] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        phrase = " ".join(line.split())
        if phrase and not phrase.startswith("#"):
            found.setdefault(phrase.lower(), Phrase(number, phrase))
    if not found:
        raise _unusable(f"{file} has no words")
    if len(found) > MOST:
        raise _unusable(f"{file} has {len(found):,} words")
    return list(found.values())


def _tokens(phrases: Sequence[Phrase], tower: TextTower, file: Path) -> list[list[int]]:
    tokens = tower.tokens([phrase.prompt for phrase in phrases])
    for phrase, own in zip(phrases, tokens, strict=True):
        if len(own) > tower.limit:
            raise DataError(
                f"line {phrase.line} of {file} is too long for the text tower, {len(own)} tokens "
                f"as “{TEMPLATE}”: {visible(phrase.text[:SHOWN])}…",
                expected=f"at most {tower.limit} tokens",
                remedy="shorten or delete the line",
            )
    return tokens


def _unusable(found: str) -> DataError:
    return DataError(
        found,
        expected=f"a text file in UTF-8, one word or phrase a line, at most {MOST:,} of them and "
        f"{MAX_BYTES:,} bytes; blank lines and lines that start with # are skipped",
        remedy="correct the file, or name another with --words",
    )
