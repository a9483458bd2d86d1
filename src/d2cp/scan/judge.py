"""Found, weak or none, and one strength that orders.

strength = (how far the value agrees with the class beyond chance, and beyond the stronger findings'
values) × (1/2 + 1/2 · shortcut), where
`shortcut` from 0 to 1 says whether it looks like something that can come and go without the class.
A window or a colour that carries the answer into another picture does; so does a value that the
class does not decide: two heaps of scores within a class, where a reading of the class itself would
make one. Kinds of the object make heaps too, so that these do not count for what lies in the middle
of the picture, nor for what a window or an edge should carry and does not. Texture and layout are
in every part of a picture: their transplant says where they lie, and counts against them alone.
However well a finding tells the class, it is called found only where it looks like a shortcut.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from d2cp.scan.changes import WHOLE_PICTURE, WHOLLY_GIVEN, WINDOWS
from d2cp.scan.finding import Outcome

FOUND = 0.45
"""Strength from which a finding is called found."""
LIKELY = 0.5
"""How far a finding must look like a shortcut to be called found."""
FULL_GAP = 0.5
"""Share of recipients that a cue carries over, control taken off, from which it is detachable. On
photographs without any cue, windows of the object carry 0.2 to 0.36."""
HIDDEN = (0.01, 0.04)
"""Nats an image that a hidden value explains more than the class does: readings of the class have
less than the first, a mark on 80 to 95% of a class's photographs about 0.05 or more."""
INSIDE = (0.25, 0.5)
"""Share of recipients that the middle carries over beyond the surroundings: above the second, the
finding lies where the object is."""


@dataclass(frozen=True)
class Judgement:
    outcome: Outcome
    strength: float
    shortcut: float
    reasons: tuple[str, ...]
    """What the verdict rests on, in words."""


def judge(lens: str, evidence: Mapping[str, Any], p_value: float, alpha: float) -> Judgement:
    alone = float(evidence["alone"])
    told = min(alone, float(evidence["beyond"]))
    moved = evidence["transplant"]
    detachable = 0.0 if lens in WHOLE_PICTURE else _ramp(float(moved["gap"]), 0.0, FULL_GAP)
    hidden = _ramp(float(evidence["hidden_value"]), *HIDDEN)
    outside = 1 - _ramp(-float(moved["gap"]), *INSIDE)
    shortcut = detachable if lens in WHOLLY_GIVEN else max(detachable, hidden * outside)
    strength = told * (0.5 + 0.5 * shortcut)
    reasons = [
        f"alone it tells {evidence['agreement']:.1%} of the classes "
        f"(chance {evidence['chance']:.0%}); {evidence['against']} of {evidence['images']} images "
        "go against it"
    ]
    if p_value > alpha:
        reasons.append(f"labels dealt at random are told as well (p = {p_value:.2g})")
        return Judgement("none", min(strength, 0.1), shortcut, tuple(reasons))
    if told < alone - 0.1:
        reasons.append(
            f"with the findings before it balanced away, {told:.0%} of its {alone:.0%} beyond "
            "chance are left"
        )
    if moved["pairs"]:
        reasons.append(
            f"put into another picture, it changes {moved['flips']:.0%} of the answers "
            f"(control {moved['control']:.0%})"
        )
    if shortcut < LIKELY and outside < 0.5:
        reasons.append("it may be the class itself: the middle of a picture carries it")
    elif shortcut < LIKELY and lens in WHOLLY_GIVEN:
        part = "a window of it" if lens in WINDOWS else "the edge of a picture"
        reasons.append(f"it may be the class itself: {part} carries few answers over")
    elif shortcut < LIKELY:
        reasons.append(
            "it may be the class itself: its scores vary within a class as those of one kind of "
            "images do"
        )
    found = strength >= FOUND and shortcut >= LIKELY
    return Judgement("found" if found else "weak", strength, shortcut, tuple(reasons))


def _ramp(x: float, low: float, high: float) -> float:
    """0 up to `low`, 1 from `high`."""
    return min(1.0, max(0.0, (x - low) / (high - low)))
