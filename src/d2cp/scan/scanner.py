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
from d2cp.scan.bank import BATCH
from d2cp.scan.batched import Floats, Ints
from d2cp.scan.candidate import Candidate
from d2cp.scan.eyes import Eyes, Features, look_at_all
from d2cp.scan.finding import Reader, Scan
from d2cp.scan.finding_search import Search
from d2cp.scan.lenses.file_properties import facts_matrix, read_all
from d2cp.scan.lenses.user_columns import column_features
from d2cp.scan.measure import measure, ranked
from d2cp.scan.transplant import PAIRS, Transplant, transplant_test


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

    measured = [
        measure(table, fit, candidate, _reader(candidate, scaling), *both, config, probe)
        for candidate, both in zip(candidates, scores, strict=True)
    ]
    train = len(table.rows("train"))
    note = f"the lenses learn from {len(fit)} of {train} training images"
    return Scan(
        findings=ranked(measured, table, fit, words, config),
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
        matrix, _ = facts_matrix(read_all(table.source.read, len(table)))
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
