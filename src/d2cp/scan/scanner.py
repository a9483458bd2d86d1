"""A table and its images → ranked findings. Only linear models are trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from d2cp.config.scan import ScanConfig
from d2cp.core.arrays import Rows
from d2cp.core.rng import permutation
from d2cp.data.source import EncodedSource
from d2cp.data.table import Table
from d2cp.scan.bank import batches
from d2cp.scan.batched import Floats, Ints
from d2cp.scan.candidate import Candidate
from d2cp.scan.eyes import Eyes, Features, describe_all, look_at_all
from d2cp.scan.finding import Reader, Scan
from d2cp.scan.finding_search import Search
from d2cp.scan.lenses.file_properties import facts_matrix, read_all
from d2cp.scan.lenses.user_columns import column_features
from d2cp.scan.measure import measure, ranked
from d2cp.scan.transplant import PAIRS, Transplant, transplant_test
from d2cp.scan.workers import each, sharing

Entries = dict[str, tuple[str, ...]]
ROWS = 1024
WORDED = 4000
"""Images by which findings are named, at most."""


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
    with sharing():
        return _scan(table, eyes, fit, config, *table_features(table, columns or {}))


def _scan(
    table: Table, eyes: Eyes, fit: Rows, config: ScanConfig, tabled: Features, entries: Entries
) -> Scan:
    seen = look_at_all(eyes, fit)
    seen |= {name: values[fit] for name, values in tabled.items()}
    scaling = Scaling.of(seen)
    scaling.apply(seen)
    search = Search(seen, table.y[fit], table.n_classes, config)
    candidates = search.run()
    del seen, search
    scores = _score_all(candidates, eyes, tabled, scaling, fit, len(table))

    def probe(lens: str, reader: Reader, scores: Floats, threshold: float | None) -> Transplant:
        fresh = np.setdiff1d(np.arange(len(table)), fit)
        rows = fresh if len(fresh) >= PAIRS else fit
        return transplant_test(lens, reader, eyes, tabled, scores, threshold, rows, config.seed)

    measured = [
        measure(table, fit, candidate, _reader(candidate, scaling), *both, config, probe)
        for candidate, both in zip(candidates, scores, strict=True)
    ]
    worded = np.arange(0, len(fit), -(-len(fit) // WORDED))
    words = describe_all(eyes, fit[worded])
    named = {
        lens: dict(zip(names, tabled[lens][fit[worded]].T, strict=True))
        for lens, names in entries.items()
    }
    train = len(table.rows("train"))
    note = f"the lenses learn from {len(fit)} of {train} training images"
    return Scan(
        findings=ranked(measured, table, fit, worded, words, named, config),
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


def table_features(table: Table, columns: Mapping[str, Sequence[str]]) -> tuple[Features, Entries]:
    """What does not come from pixels, for every row, and what each feature is called."""
    found: Features = {}
    entries: Entries = {}
    if isinstance(table.source, EncodedSource):
        matrix, names = facts_matrix(read_all(table.source.read, len(table)))
        if matrix.shape[1]:
            found["file"], entries["file"] = matrix, names
    for name, values in columns.items():
        lens = f"column {name}"
        found[lens], entries[lens] = column_features(values, name)
    return found, entries


@dataclass(frozen=True)
class Scaling:
    """Mean and spread of every feature over the rows learnt from."""

    centre: Features
    scale: Features

    @classmethod
    def of(cls, features: Features) -> Scaling:
        """In double precision, a batch at a time: no copy of all features is made."""
        centre, scale = {}, {}
        for name, x in features.items():
            parts = [x[start : start + ROWS] for start in range(0, len(x), ROWS)]
            mean = sum(p.sum(0, dtype=np.float64) for p in parts) / len(x)
            square = sum(np.square(p - mean).sum(0) for p in parts) / len(x)
            centre[name] = np.asarray(mean, np.float32)
            scale[name] = np.asarray(np.sqrt(square) + 1e-6, np.float32)
        return cls(centre, scale)

    def apply(self, features: Features) -> None:
        """In place."""
        for name, x in features.items():
            x -= self.centre[name]
            x /= self.scale[name]

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
    by_fold = [
        np.zeros((len(c.intercept), len(rest), c.held_out.shape[1]), np.float32) for c in candidates
    ]
    lenses = {lens for candidate in candidates for lens in candidate.weight}
    parts = batches(rest, eyes.size)

    def score(number: int) -> None:
        rows, start = parts[number], number * len(parts[0])
        seen = eyes.look(rows, lenses) | {k: tabled[k][rows] for k in lenses if k in tabled}
        standard = scaling(seen)
        for candidate, scores in zip(candidates, by_fold, strict=True):
            total = candidate.intercept[:, None, :]
            for lens, weight in candidate.weight.items():
                total = total + standard[lens] @ weight
            scores[:, start : start + len(rows)] = total

    each(score, range(len(parts)))
    found = []
    for candidate, scores in zip(candidates, by_fold, strict=True):
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
