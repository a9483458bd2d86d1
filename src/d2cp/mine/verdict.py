"""Found, weak or none: what the evidence says, in one sentence a person can check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Outcome = Literal["found", "weak", "none"]

MIN_SIGNAL = 0.1
"""Below this share of the label's entropy the mined concepts hardly tell the classes apart."""
MIN_SEPARATION = 2.0
"""Ashman's D from which two groups count as apart."""
MIN_STABILITY = 0.8
"""Balanced agreement of the pseudo labels across resamples."""
SHORTCUT_RATIO = 0.4
"""Confident disagreement from which a cue looks like a shortcut and not like the class."""
CLASS_RATIO = 0.25
"""Confident disagreement below which, errors allowed for, it looks like the class. Between the two
it does where the score is not in two groups either."""
MIN_DISAGREEING = 5
"""Fewer images against the cue cannot be told from stray labels."""


@dataclass(frozen=True)
class Verdict:
    """`outcome`, the sentence that says why, every reason against, and the evidence's figures."""

    outcome: Outcome
    sentence: str
    reasons: tuple[str, ...]
    evidence: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return {
            "outcome": self.outcome,
            "sentence": self.sentence,
            "reasons": list(self.reasons),
            "evidence": self.evidence,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Verdict:
        return cls(
            values["outcome"],
            values["sentence"],
            tuple(values["reasons"]),
            dict(values["evidence"]),
        )


def judge(evidence: Mapping[str, Any], concepts: Sequence[int]) -> Verdict:
    """Fatal reasons make "none", mild ones "weak", no reason "found"."""
    fatal, mild = _against(evidence)
    outcome: Outcome = "none" if fatal else "weak" if mild else "found"
    names = _names(concepts)
    agree, against = evidence["agreement"], evidence["disagreeing"]
    if outcome == "none":
        sentence = f"No shortcut found: {fatal[0]}."
    else:
        verb = "predicts" if len(concepts) == 1 else "predict"
        sentence = (
            f"{names} {verb} the class of {agree:.1%} of the training images; "
            f"{against} images ({1 - agree:.1%}) go against it."
        )
        if mild:
            sentence += f" The evidence is weak: {mild[0]}."
    return Verdict(outcome, sentence, tuple(fatal + mild), dict(evidence))


def _against(e: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    fatal: list[str] = []
    mild: list[str] = []
    if e["values"] < 2:
        fatal.append("every image gets the same pseudo label")
    if e["disagreeing"] == 0:
        fatal.append(
            "the pseudo label equals the class, so that what was found is the class itself"
        )
    elif e["disagreeing"] < MIN_DISAGREEING:
        mild.append(f"only {e['disagreeing']} images go against the mined concepts")
    if e["signal_mined"] < MIN_SIGNAL:
        fatal.append(
            "the mined concepts hardly predict the class "
            f"(held-out accuracy {e['accuracy_mined']:.0%}, chance {e['chance']:.0%})"
        )
    ratio, error = e["confident_disagreement"], e["confident_disagreement_error"]
    crowd = (
        "the images against the mined concepts crowd at their boundary, as errors about the class "
        f"itself do (sure predictions are contradicted {ratio:.2f} times as often as all)"
    )
    blurred = e["classes"] == 2 and e["separation"] < MIN_SEPARATION
    groups = f"the score does not fall into two clear groups (D = {e['separation']:.1f})"
    if ratio + error < CLASS_RATIO:
        fatal.append(crowd)
    elif ratio < SHORTCUT_RATIO:
        (fatal if blurred else mild).append(crowd)
    if e["classes"] == 2 and e["bic_gain"] <= 0:
        fatal.append("the score has one group, not two")
    elif blurred:
        mild.append(groups)
    if e["empty_cells"] and e["classes"] == 2:
        mild.append("a combination of class and pseudo label has no image")
    if e["stability_labels"] < MIN_STABILITY:
        mild.append(
            f"resampled training images move the pseudo labels (agreement "
            f"{e['stability_labels']:.0%})"
        )
    return fatal, mild


def _names(concepts: Sequence[int]) -> str:
    if len(concepts) == 1:
        return f"Concept {concepts[0]}"
    listed = ", ".join(str(k) for k in concepts[:-1])
    return f"Concepts {listed} and {concepts[-1]}"
