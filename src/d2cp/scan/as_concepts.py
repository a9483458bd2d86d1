"""Findings as concepts: their cross-fitted scores, standardised, for the concept model to draw."""

from __future__ import annotations

import numpy as np

from d2cp.scan.batched import Floats, Ints
from d2cp.scan.finding import Scan


def finding_scalars(found: Scan, train: Ints, most: int) -> tuple[Floats, tuple[int, ...]]:
    """Scalars [N, G] of mean 0 and variance 1 on the training rows, G at most `most`, and the rank
    of the finding behind each. A finding that is no more than chance gives none. With several
    classes it gives the directions in which its scores vary most, one fewer than classes."""
    columns: list[Floats] = []
    ranks: list[int] = []
    for finding in found.findings:
        if finding.outcome == "none":
            continue
        scores = finding.scores.astype(np.float64)
        centred = scores - scores[train].mean(axis=0)
        if centred.shape[1] > 1:
            _, _, directions = np.linalg.svd(centred[train], full_matrices=False)
            centred = centred @ directions[: centred.shape[1] - 1].T
        for column in centred.T[: most - len(ranks)]:
            columns.append((column / (column[train].std() + 1e-9)).astype(np.float32))
            ranks.append(finding.rank)
    if not columns:
        return np.zeros((0, 0), np.float32), ()
    return np.stack(columns, axis=1), tuple(ranks)
