"""Found, weak or none, and one strength that orders.

strength = (how far the value agrees with the class beyond chance, and beyond the stronger findings'
values) × (1/2 + 1/2 · shortcut), where
`shortcut` from 0 to 1 says whether it looks like something that can come and go without the class.
A window that carries the answer into another picture does; so does what is contradicted by the
class even where it is sure, more often than an equally good reading of the class would be. A lens
that sees the whole picture moves with everything in it, the object included, so that its transplant
has to carry nearly every answer, and its control none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from d2cp.scan.finding import Outcome

FOUND = 0.45
"""Strength from which a finding is called found."""
FULL_GAP = 0.25
"""Share of recipients that a cue carries over, control taken off, from which it is detachable."""
UNLIKE = (0.4, 0.6)
"""How far sure answers are contradicted more often than those of an equally good reading of the
class itself: below the first like errors about the class, which are not quite normal, above the
second like a cue that the class does not depend on."""
WHOLE_PICTURE = ("texture", "layout")
WHOLE_GAP = (0.75, 0.95)
"""The same share for these: below the first the object itself may have moved along."""


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
    ratio, moved = float(evidence["sure_and_wrong"]), evidence["transplant"]
    needed = WHOLE_GAP if lens in WHOLE_PICTURE else (0.0, FULL_GAP)
    detachable = _ramp(float(moved["gap"]), *needed)
    contradicted = _ramp(float(evidence["unlike_the_class"]), *UNLIKE)
    shortcut = max(detachable, contradicted)
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
    if shortcut < 0.5:
        reasons.append(
            "it may be the class itself: answers that are sure are contradicted "
            f"{ratio:.2f} times as often as all"
        )
    return Judgement("found" if strength >= FOUND else "weak", strength, shortcut, tuple(reasons))


def _ramp(x: float, low: float, high: float) -> float:
    """0 up to `low`, 1 from `high`."""
    return min(1.0, max(0.0, (x - low) / (high - low)))
