"""From what the search found to findings: values, evidence, verdicts, ranks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from d2cp.config.scan import ScanConfig
from d2cp.data.table import Table
from d2cp.scan.batched import Floats, Ints
from d2cp.scan.beyond import told_beyond
from d2cp.scan.candidate import Candidate
from d2cp.scan.evidence import certainty, sure_and_wrong, unlike_the_class
from d2cp.scan.eyes import Features
from d2cp.scan.finding import Finding, Reader
from d2cp.scan.hidden import hidden_value
from d2cp.scan.judge import Judgement, judge
from d2cp.scan.names import CARRIED, describe, describe_entry, value_names, with_place
from d2cp.scan.transplant import Transplant
from d2cp.scan.values import agreement, beyond_chance, cut, score_of, values_of

WORTH_A_TEST = 0.15
"""Agreement beyond chance below which a finding is weak whatever its transplants do."""
AS_FAR = 0.1
"""Share of transplants by which a plainer lens may fall behind and still name a finding."""
LISTED = 0.05
"""Strength below which a finding is not named, unless it is the strongest: with many images what
tells a fiftieth of the class is more than chance, and nobody can do anything about it."""
BEYOND_ROWS = 4000
"""Rows at most on which findings are held against each other."""

Probe = Callable[[str, Reader, Floats, float | None], Transplant]


@dataclass(frozen=True)
class Measured:
    """A candidate with the value and scores of every row, and what speaks for it."""

    candidate: Candidate
    reader: Reader
    scores: Floats
    each_fold: Floats
    threshold: float | None
    value: Ints
    evidence: dict[str, Any]

    def verdict(self, alpha: float, **more: float) -> Judgement:
        return judge(self.candidate.lens, {**self.evidence, **more}, self.candidate.p_value, alpha)


def measure(
    table: Table,
    fit: Ints,
    candidate: Candidate,
    reader: Reader,
    scores: Floats,
    each_fold: Floats,
    config: ScanConfig,
    probe: Probe,
) -> Measured:
    """`scores` are of every row, held out for the rows `fit` learnt from. Of the lenses that read
    the finding equally well, it is named after the one whose transplant carries it furthest."""
    y = table.y[fit]
    threshold = cut(candidate.held_out, y)
    value = values_of(scores, threshold)
    agreeing = agreement(value[fit], y)
    ratio, error, unlike = _contradicted(candidate, y)
    alone = beyond_chance(agreeing, table.n_classes)
    moved = Transplant(0.0, 0.0, 0, 0)
    if candidate.p_value <= config.alpha and alone >= WORTH_A_TEST:
        tried = [(lens, probe(lens, reader, scores, threshold)) for lens in candidate.leads]
        furthest = max(t.gap for _, t in tried)
        lens, moved = next((lens, t) for lens, t in tried if t.gap >= furthest - AS_FAR)
        candidate = dataclasses.replace(candidate, lens=lens)
    evidence: dict[str, Any] = {
        "agreement": agreeing,
        "chance": 1 / table.n_classes,
        "alone": alone,
        "beyond": alone,
        "against": int((value[fit] != y).sum()),
        "images": len(fit),
        "sure_and_wrong": ratio,
        "sure_and_wrong_error": error,
        "unlike_the_class": unlike,
        "hidden_value": hidden_value(candidate.held_out, y, table.n_classes),
        "transplant": {**dataclasses.asdict(moved), "gap": moved.gap},
    }
    return Measured(candidate, reader, scores, each_fold, threshold, value, evidence)


def _contradicted(candidate: Candidate, y: Ints) -> tuple[float, float, float]:
    """Sure answers that the class contradicts, relative to all, the standard error, and how unlike
    the class that is: by the scores before the finding was learnt again. Posteriors of a hidden
    value part any score into two, after which the sure ones are contradicted like all others."""
    scores = candidate.held_out if candidate.plain is None else candidate.plain
    threshold = cut(scores, y)
    value = values_of(scores, threshold)
    ratio, error = sure_and_wrong(value, certainty(scores, threshold), y)
    return ratio, error, unlike_the_class(ratio, 1 - agreement(value, y))


def ranked(
    measured: list[Measured],
    table: Table,
    fit: Ints,
    worded: Ints,
    words: Features,
    entries: dict[str, Features],
    config: ScanConfig,
) -> tuple[Finding, ...]:
    """The strongest first; each is judged by what it tells beyond those before it. `words` are
    plain properties of the rows `fit[worded]`, `entries` those of lenses that look at the file or
    at a column."""
    measured = sorted(measured, key=lambda m: -m.verdict(config.alpha).strength)
    rows = fit[:: -(-len(fit) // BEYOND_ROWS)]
    some = np.isin(fit, rows)
    judged: list[tuple[Judgement, float, Measured]] = []
    for n, part in enumerate(measured):
        earlier = [other.candidate.held_out[some] for other in measured[:n]]
        beyond = float(part.evidence["alone"])
        if earlier:
            beyond = told_beyond(part.value[rows], table.y[rows], table.n_classes, earlier)
        judged.append((part.verdict(config.alpha, beyond=beyond), beyond, part))
    judged.sort(key=lambda j: -j[0].strength)
    judged = judged[: how_many([verdict.strength for verdict, _, _ in judged])]
    return tuple(
        _finding(rank, verdict, beyond, part, table, fit, worded, words, entries)
        for rank, (verdict, beyond, part) in enumerate(judged, start=1)
    )


def how_many(strengths: Sequence[float]) -> int:
    """Of findings, the strongest first, so many are named."""
    return max(1, sum(strength >= LISTED for strength in strengths))


def _finding(
    rank: int,
    verdict: Judgement,
    beyond: float,
    part: Measured,
    table: Table,
    fit: Ints,
    worded: Ints,
    words: Features,
    entries: dict[str, Features],
) -> Finding:
    candidate = part.candidate
    # With more than two classes there is no one direction that a property could name.
    named = words if table.n_classes == 2 else {}
    score, y = candidate.held_out[worded, 0], table.y[fit[worded]]
    if candidate.lens in entries and named:
        name, two = describe_entry(candidate.lens, score, entries[candidate.lens])
    else:
        name, two = describe(candidate.lens, score, y, named)
    moved = part.evidence["transplant"]
    if moved["gap"] >= CARRIED and verdict.shortcut >= 0.5:
        name = with_place(candidate.lens, name, moved["place"])
    carried = int(moved["towards"]) if moved["gap"] >= CARRIED else None
    return Finding(
        rank=rank,
        name=name,
        lens=candidate.lens,
        lenses=candidate.lenses,
        outcome=verdict.outcome,
        strength=verdict.strength,
        p_value=candidate.p_value,
        agreement=float(part.evidence["agreement"]),
        value_names=value_names(candidate.lens, two, table.class_names, carried),
        threshold=part.threshold,
        stability=stability(part.each_fold, part.threshold),
        evidence={**part.evidence, "beyond": beyond, "shortcut": verdict.shortcut},
        reasons=verdict.reasons,
        value=part.value,
        score=score_of(part.scores, part.value),
        scores=part.scores,
        reader=part.reader,
    )


def stability(each_fold: Floats, threshold: float | None) -> float:
    """Mean share of images to which a fold model gives the value that all together give; 1 where
    there is no image that none of them learnt from."""
    if not each_fold.shape[1]:
        return 1.0
    together = values_of(each_fold.mean(0), threshold)
    return float(np.mean([np.mean(values_of(s, threshold) == together) for s in each_fold]))
