"""Found, weak or none, and one strength that orders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from d2cp.scan.finding import Outcome

FOUND = 0.5
"""Strength from which a finding is called found."""


@dataclass(frozen=True)
class Judgement:
    outcome: Outcome
    strength: float
    reasons: tuple[str, ...]
    """What speaks against the finding, in words."""


def judge(evidence: dict[str, Any], p_value: float, alpha: float) -> Judgement:
    strength = float(evidence["alone"])
    if p_value > alpha:
        reason = f"labels dealt at random are told as well (p = {p_value:.2g})"
        return Judgement("none", min(strength, 0.1), (reason,))
    if strength < FOUND:
        return Judgement("weak", strength, (f"it tells little of the class ({strength:.2f})",))
    return Judgement("found", strength, ())
