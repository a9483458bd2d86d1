"""A table and its images → ranked findings. Only linear models are trained."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from d2cp.config.scan import ScanConfig
from d2cp.core.arrays import Rows
from d2cp.core.rng import permutation
from d2cp.data.source import EncodedSource
from d2cp.data.table import Table
from d2cp.scan.bank import BATCH
from d2cp.scan.batched import Floats, Ints
from d2cp.scan.candidate import Candidate
from d2cp.scan.evidence import certainty, sure_and_wrong
from d2cp.scan.eyes import Eyes, Features, look_at_all
from d2cp.scan.finding import Finding, Reader, Scan
from d2cp.scan.finding_search import Search
from d2cp.scan.judge import judge
from d2cp.scan.lenses.file_properties import facts_matrix, read_facts
from d2cp.scan.lenses.user_columns import column_features
from d2cp.scan.names import CARRIED, describe, value_names
from d2cp.scan.transplant import PAIRS, Transplant, transplant_test
from d2cp.scan.values import agreement, beyond_chance, cut, score_of, values_of

WORTH_A_TEST = 0.15
"""Agreement beyond chance below which a finding is weak whatever its transplants do."""

Probe = Callable[[str, Reader, Floats, float | None], Transplant]


def scan(
    table: Table,
    eyes: Eyes,
    fit: Rows,
    config: ScanConfig,
    columns: Mapping[str, Sequence[str]] | None = None,
) -> Scan:
    """Look at `table` through every lens and rank what they find.

    The lenses learn from the training rows `fit`; every row is scored. The true attribute is not
    read. `columns` are further columns of the user's, one value a row.
    """
    tabled = table_features(table, columns or {})
    seen, words = look_at_all(eyes, fit)
    seen |= {name: values[fit] for name, values in tabled.items()}
    scaling = Scaling.of(seen)
    standard = scaling(seen)
    del seen
    search = Search(standard, table.y[fit], table.n_classes, config)
    candidates = search.run()
    del standard, search
    scores = _score_all(candidates, eyes, tabled, scaling, fit, len(table))

    def probe(lens: str, reader: Reader, scores: Floats, threshold: float | None) -> Transplant:
        fresh = np.setdiff1d(np.arange(len(table)), fit)
        rows = fresh if len(fresh) >= PAIRS else fit
        return transplant_test(lens, reader, eyes, tabled, scores, threshold, rows, config.seed)

    made = []
    for candidate, (score, each_fold) in zip(candidates, scores, strict=True):
        reader = _reader(candidate, scaling)
        finding = _finding(table, fit, candidate, score, each_fold, words, reader, config, probe)
        made.append(finding)
    order = sorted(range(len(made)), key=lambda i: -made[i]["strength"])
    train = len(table.rows("train"))
    note = f"the lenses learn from {len(fit)} of {train} training images"
    return Scan(
        findings=tuple(Finding(rank=r, **made[i]) for r, i in enumerate(order, start=1)),
        bank=eyes.bank,
        size=eyes.size,
        table_features=tabled,
        notes=(note,) if len(fit) < train else (),
    )


def rows_to_learn_from(table: Table, config: ScanConfig) -> Rows:
    """The training rows, or as many of them as the configuration allows, drawn blindly."""
    train = table.rows("train")
    order = permutation(config.seed, "scan/fit", 0, len(train))[: config.fit_rows]
    return train[np.sort(order)]


def table_features(table: Table, columns: Mapping[str, Sequence[str]]) -> Features:
    """What does not come from pixels, for every row."""
    found: Features = {}
    if isinstance(table.source, EncodedSource):
        facts = [read_facts(table.source.read(row)) for row in range(len(table))]
        matrix, _ = facts_matrix(facts)
        if matrix.shape[1]:
            found["file"] = matrix
    for name, values in columns.items():
        found[f"column {name}"], _ = column_features(values, name)
    return found


@dataclass(frozen=True)
class Scaling:
    """Mean and spread of every feature over the rows learnt from."""

    centre: Features
    scale: Features

    @classmethod
    def of(cls, features: Features) -> Scaling:
        centre = {k: v.mean(0) for k, v in features.items()}
        return cls(centre, {k: v.std(0) + 1e-6 for k, v in features.items()})

    def __call__(self, features: Features) -> Features:
        return {k: (v - self.centre[k]) / self.scale[k] for k, v in features.items()}


def _score_all(
    candidates: list[Candidate],
    eyes: Eyes,
    tabled: Features,
    scaling: Scaling,
    fit: Ints,
    n: int,
) -> list[tuple[Floats, Floats]]:
    """For each candidate scores [N, T] of all rows, the held-out one where the row was learnt
    from, the mean over the fold models elsewhere; and these rows' scores fold by fold."""
    rest = np.setdiff1d(np.arange(n), fit)
    each = [
        np.zeros((len(c.intercept), len(rest), c.held_out.shape[1]), np.float32) for c in candidates
    ]
    for start in range(0, len(rest), BATCH):
        rows = rest[start : start + BATCH]
        seen, _ = eyes.look(rows)
        standard = scaling({**seen, **{k: v[rows] for k, v in tabled.items()}})
        for candidate, scores in zip(candidates, each, strict=True):
            total = candidate.intercept[:, None, :]
            for lens, weight in candidate.weight.items():
                total = total + np.einsum("nd,fdt->fnt", standard[lens], weight, optimize=True)
            scores[:, start : start + len(rows)] = total
    found = []
    for candidate, scores in zip(candidates, each, strict=True):
        whole = np.zeros((n, candidate.held_out.shape[1]), dtype=np.float32)
        whole[fit], whole[rest] = candidate.held_out, scores.mean(0)
        found.append((whole, scores))
    return found


def _reader(candidate: Candidate, scaling: Scaling) -> Reader:
    return Reader(
        weight={lens: w.mean(0) for lens, w in candidate.weight.items()},
        intercept=candidate.intercept.mean(0),
        centre={lens: scaling.centre[lens] for lens in candidate.weight},
        scale={lens: scaling.scale[lens] for lens in candidate.weight},
    )


def _finding(
    table: Table,
    fit: Ints,
    candidate: Candidate,
    scores: Floats,
    each_fold: Floats,
    words: Features,
    reader: Reader,
    config: ScanConfig,
    probe: Probe,
) -> dict[str, Any]:
    """All fields of a Finding but its rank."""
    y = table.y[fit]
    threshold = cut(candidate.held_out, y)
    value = values_of(scores, threshold)
    agreeing = agreement(value[fit], y)
    ratio, error = sure_and_wrong(value[fit], certainty(candidate.held_out, threshold), y)
    alone = beyond_chance(agreeing, table.n_classes)
    moved = Transplant(0.0, 0.0, 0, 0)
    if candidate.p_value <= config.alpha and alone >= WORTH_A_TEST:
        moved = probe(candidate.lens, reader, scores, threshold)
    evidence: dict[str, Any] = {
        "agreement": agreeing,
        "chance": 1 / table.n_classes,
        "alone": alone,
        "against": int((value[fit] != y).sum()),
        "images": len(fit),
        "sure_and_wrong": ratio,
        "sure_and_wrong_error": error,
        "transplant": {**dataclasses.asdict(moved), "gap": moved.gap},
    }
    verdict = judge(candidate.lens, evidence, candidate.p_value, config.alpha)
    evidence["shortcut"] = verdict.shortcut
    name, two = describe(candidate.lens, candidate.held_out[:, 0], y, words)
    carried = moved.towards if moved.gap >= CARRIED else None
    return {
        "name": name,
        "lens": candidate.lens,
        "lenses": candidate.lenses,
        "outcome": verdict.outcome,
        "strength": verdict.strength,
        "p_value": candidate.p_value,
        "agreement": agreeing,
        "value_names": value_names(candidate.lens, two, table.class_names, carried),
        "threshold": threshold,
        "stability": stability(each_fold, threshold),
        "evidence": evidence,
        "reasons": verdict.reasons,
        "value": value,
        "score": score_of(scores, value),
        "scores": scores,
        "reader": reader,
    }


def stability(each_fold: Floats, threshold: float | None) -> float:
    """Mean share of images to which a fold model gives the value that all together give; 1 where
    there is no image that none of them learnt from."""
    if not each_fold.shape[1]:
        return 1.0
    together = values_of(each_fold.mean(0), threshold)
    return float(np.mean([np.mean(values_of(s, threshold) == together) for s in each_fold]))
