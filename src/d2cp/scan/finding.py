"""What a scan hands on: ranked findings, each with a value and a score for every image."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from d2cp.core.records import WordsRecord
from d2cp.scan.bank import Bank
from d2cp.scan.batched import Doubles, Floats, Ints

Outcome = Literal["found", "weak", "none"]


@dataclass(frozen=True, kw_only=True)
class Reader:
    """A finding as a function of the features: score = Σ over lenses of z · weight + intercept,
    z the features standardised. It is the mean of the fold models."""

    weight: dict[str, Floats]
    """Lens → [D, T]; T is 1 with two classes, else the number of classes."""
    intercept: Floats
    centre: dict[str, Floats]
    scale: dict[str, Floats]

    def __call__(self, features: dict[str, Floats]) -> Floats:
        """Scores [N, T]."""
        total = self.intercept[None]
        for lens, weight in self.weight.items():
            standard = (features[lens] - self.centre[lens]) / self.scale[lens]
            total = total + (standard @ weight).astype(np.float32)
        return total


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One candidate shortcut. `value` and `score` have one entry for each row of the table.

    With two classes, value 1 and a high score speak for class 1; with more, value v speaks for
    class v and the score says how surely.
    """

    rank: int
    name: str
    lens: str
    lenses: tuple[str, ...]
    """Every lens that the score reads; the first is `lens`."""
    outcome: Outcome
    strength: float
    """0 to 1: how far a model could lean on it, see `d2cp.scan.judge`."""
    p_value: float
    """Of the permutation null: how often labels dealt anew are told as well by any lens."""
    agreement: float
    """Share of the training images whose value points at their class, classes counted alike."""
    value_names: tuple[str, ...]
    threshold: float | None
    stability: float
    evidence: dict[str, Any]
    reasons: tuple[str, ...]
    value: Ints
    score: Doubles
    scores: Floats
    """[N, T]; `score` is its only column, or with several the column of the value."""
    reader: Reader
    words: WordsRecord | None = None
    """Of a person's file; none where none was given, or the finding is not one of the first."""

    @property
    def values(self) -> int:
        return len(self.value_names)

    def to_dict(self) -> dict[str, Any]:
        """What `d2cp show --json` prints of it."""
        plain = (
            *("rank", "name", "lens", "lenses", "outcome", "strength", "p_value", "agreement"),
            *("value_names", "threshold", "stability", "evidence", "reasons"),
        )
        made = {key: getattr(self, key) for key in plain}
        if self.words is not None:
            made["words"] = self.words
        return {k: list(v) if isinstance(v, tuple) else v for k, v in made.items()}


@dataclass(frozen=True, kw_only=True)
class Scan:
    """All findings of a data set, best first, and the lenses they were made with."""

    findings: tuple[Finding, ...]
    bank: Bank
    size: int
    """Side of the images that the bank's features are taken from."""
    table_features: dict[str, Floats] = field(default_factory=dict)
    """Features that do not come from pixels, for every row: the file's and the columns'."""
    lens_accuracy: dict[str, float] = field(default_factory=dict)
    """Held-out balanced accuracy of each lens for the class."""
    notes: tuple[str, ...] = ()

    @property
    def outcome(self) -> Outcome:
        outcomes = [f.outcome for f in self.findings]
        return "found" if "found" in outcomes else "weak" if "weak" in outcomes else "none"
