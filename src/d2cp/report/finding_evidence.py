"""How sure the finding is: the mining stage's evidence in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from d2cp.core.text import visible
from d2cp.report.words import figure, percent, phrase


@dataclass(frozen=True, kw_only=True)
class Clue:
    name: str
    value: str
    meaning: str


_SHARES = {
    "accuracy_mined": (
        "Class guessed from the mined concepts alone",
        "on images held out from the guess; guessing blindly gives {chance}",
    ),
    "signal_share": (
        "Share of the class signal in the mined concepts",
        "near 100%: a lazy classifier needs little else",
    ),
    "agreement": (
        "Images that follow the shortcut",
        "{disagreeing} training images go against it: they tell class and shortcut apart",
    ),
    "stability_concepts": (
        "Same concepts found on resampled data",
        "near 100%: the finding does not hang on a few images",
    ),
    "stability_labels": (
        "Same value given to an image on resampled data",
        "near 100%: the value of an image does not hang on the others",
    ),
}
_NUMBERS = {
    "confident_disagreement": (
        "Confident guesses that the label contradicts",
        "near 1: a shortcut, the label ignores it; near 0: the concept is the class itself",
    ),
    "separation": (
        "Distance between the two humps of the score",
        "above 2: clearly two kinds of image",
    ),
    "smallest_cell": (
        "Training images in the rarest class × value",
        "below about 10, little can be learned from them",
    ),
}


def clues(evidence: Mapping[str, Any]) -> list[Clue]:
    """The figures a reader can judge by; `others` holds the rest."""
    made = []
    facts = {
        "chance": percent(evidence.get("chance")),
        "disagreeing": f"{evidence.get('disagreeing', 0):,}",
    }
    for key, (name, meaning) in _SHARES.items():
        if isinstance(value := evidence.get(key), (int, float)):
            made.append(Clue(name=name, value=percent(value), meaning=meaning.format(**facts)))
    for key, (name, meaning) in _NUMBERS.items():
        if isinstance(value := evidence.get(key), (int, float)):
            text = f"{value:,}" if isinstance(value, int) else f"{value:.2f}"
            made.append(Clue(name=name, value=text, meaning=meaning))
    return made


def others(evidence: Mapping[str, Any]) -> list[tuple[str, str]]:
    known = {*_SHARES, *_NUMBERS}
    return [(visible(phrase(k)), figure(v)) for k, v in evidence.items() if k not in known]
