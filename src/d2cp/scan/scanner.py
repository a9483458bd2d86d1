"""A table and its images → ranked findings. Only linear models are trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from d2cp.config.scan import ScanConfig
from d2cp.core.rng import permutation
from d2cp.data.source import EncodedSource
from d2cp.data.store import ImageStore
from d2cp.data.table import Table
from d2cp.scan.arrays import Floats, Ints
from d2cp.scan.bank import BATCH, Bank, learn_bank, read
from d2cp.scan.candidate import Candidate
from d2cp.scan.finding import Finding, Reader, Scan
from d2cp.scan.judge import judge
from d2cp.scan.lenses.columns import column_features
from d2cp.scan.lenses.files import facts_matrix, read_facts
from d2cp.scan.names import describe
from d2cp.scan.properties import properties
from d2cp.scan.search import Search
from d2cp.scan.values import agreement, beyond_chance, cut, score_of, values_of

DICTIONARY_IMAGES = 800

Features = dict[str, Floats]
Step = Callable[[int], None]


def scan(
    table: Table,
    store: ImageStore,
    config: ScanConfig,
    columns: Mapping[str, Sequence[str]] | None = None,
    step: Step = lambda images: None,
) -> Scan:
    """Look at `table` through every lens. The true attribute is not read. `columns` are further
    columns of the user's, one value a row; `step` is told how many images were looked at."""
    train = table.rows("train")
    fit = train
    notes = []
    if len(train) > config.fit_rows:
        fit = np.sort(train[permutation(config.seed, "scan/fit", 0, len(train))[: config.fit_rows]])
        notes.append(f"the lenses learn from {len(fit)} of {len(train)} training images")
    some = permutation(config.seed, "scan/dictionary", 0, len(fit))[:DICTIONARY_IMAGES]
    bank = learn_bank(store, fit[np.sort(some)], config.centres, config.seed)
    tabled = table_features(table, columns or {})
    seen, words = _look(bank, store, fit, step)
    scaling = Scaling.of({**seen, **{k: v[fit] for k, v in tabled.items()}})
    standard = scaling({**seen, **{k: v[fit] for k, v in tabled.items()}})
    del seen
    search = Search(standard, table.y[fit], table.n_classes, config)
    candidates = search.run()
    del standard, search.lenses, search.null_lenses
    scores = _score_all(candidates, bank, store, tabled, scaling, fit, len(table), step)
    made = []
    for candidate, (score, each_fold) in zip(candidates, scores, strict=True):
        reader = _reader(candidate, scaling)
        made.append(_finding(table, fit, candidate, score, each_fold, words, reader, config))
    order = sorted(range(len(made)), key=lambda i: -made[i]["strength"])
    return Scan(
        findings=tuple(Finding(rank=r, **made[i]) for r, i in enumerate(order, start=1)),
        bank=bank,
        size=store.size,
        table_features=tabled,
        notes=tuple(notes),
    )


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


@torch.inference_mode()
def _look(bank: Bank, store: ImageStore, rows: Ints, step: Step) -> tuple[Features, Features]:
    """Features and plain properties of the rows."""
    parts: list[Features] = []
    words: list[Features] = []
    for start in range(0, len(rows), BATCH):
        images = read(store, rows[start : start + BATCH])
        parts.append({k: v.numpy() for k, v in bank.features(images).items()})
        words.append({k: v.numpy() for k, v in properties(images).items()})
        step(len(images))
    return _joined(parts), _joined(words)


def _joined(parts: list[Features]) -> Features:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@torch.inference_mode()
def _score_all(
    candidates: list[Candidate],
    bank: Bank,
    store: ImageStore,
    tabled: Features,
    scaling: Scaling,
    fit: Ints,
    n: int,
    step: Step,
) -> list[tuple[Floats, Floats]]:
    """For each candidate scores [N, T] of all rows, the held-out one where the row was learnt
    from, the mean over the fold models elsewhere; and these rows' scores fold by fold."""
    rest = np.setdiff1d(np.arange(n), fit)
    each = [
        np.zeros((len(c.intercept), len(rest), c.held_out.shape[1]), np.float32) for c in candidates
    ]
    for start in range(0, len(rest), BATCH):
        rows = rest[start : start + BATCH]
        images = read(store, rows)
        seen = {k: v.numpy() for k, v in bank.features(images).items()}
        standard = scaling({**seen, **{k: v[rows] for k, v in tabled.items()}})
        for candidate, scores in zip(candidates, each, strict=True):
            total = candidate.intercept[:, None, :]
            for lens, weight in candidate.weight.items():
                total = total + np.einsum("nd,fdt->fnt", standard[lens], weight, optimize=True)
            scores[:, start : start + len(rows)] = total
        step(len(rows))
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
) -> dict[str, Any]:
    """All fields of a Finding but its rank."""
    y = table.y[fit]
    threshold = cut(candidate.held_out, y)
    value = values_of(scores, threshold)
    agreeing = agreement(value[fit], y)
    evidence = {
        "alone": beyond_chance(agreeing, table.n_classes),
        "against": int((value[fit] != y).sum()),
        "images": len(fit),
    }
    verdict = judge(evidence, candidate.p_value, config.alpha)
    name, two = describe(candidate.lens, candidate.held_out[:, 0], y, words)
    several = tuple(f"like {label}" for label in table.class_names)
    return {
        "name": name,
        "lens": candidate.lens,
        "lenses": candidate.lenses,
        "outcome": verdict.outcome,
        "strength": verdict.strength,
        "p_value": candidate.p_value,
        "agreement": agreeing,
        "value_names": two if table.n_classes == 2 else several,
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
