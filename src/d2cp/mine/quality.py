"""How good the concepts and pseudo labels are, where true attributes are known. For scoring only:
nothing here feeds back into mining."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from d2cp.core.arrays import Floats, Ints, balanced_accuracy


def concept_auroc(scalars: ArrayLike, positive: ArrayLike) -> Floats:
    """AUROC [K] of each concept's scalar for a yes/no attribute, at least 1/2: either direction
    counts. Ties count half; 1/2 where one side is empty."""
    s, flag = np.asarray(scalars, dtype=np.float64), np.asarray(positive, dtype=bool)
    yes, no = int(flag.sum()), int((~flag).sum())
    if not yes or not no:
        return np.full(s.shape[1], 0.5)
    ranks = rankdata(s, axis=0)
    area = (ranks[flag].sum(axis=0) - yes * (yes + 1) / 2) / (yes * no)
    result: Floats = np.maximum(area, 1 - area)
    return result


def best_concepts(scalars: ArrayLike, attribute: ArrayLike) -> dict[str, Any]:
    """The single concept that tells an attribute best: with two values {"concept", "auroc"}; with
    more the mean over values of the best one-against-rest AUROC, and the concept of each value."""
    attribute = np.asarray(attribute)
    values = np.unique(attribute)
    tested = values[1:] if len(values) == 2 else values
    areas = [concept_auroc(scalars, attribute == v) for v in tested]
    chosen = [int(np.argmax(area)) for area in areas]
    auroc = float(np.mean([area.max() for area in areas])) if areas else 0.5
    if len(values) <= 2:
        return {"concept": chosen[0] if chosen else None, "auroc": auroc}
    names = [str(v) for v in values]
    return {"concept": dict(zip(names, chosen, strict=True)), "auroc": auroc}


def match_values(pseudo: ArrayLike, true: ArrayLike) -> Ints:
    """true value [A~] of each pseudo value: the one-to-one matching with the highest mean recall;
    pseudo values left over go to the true value they cover most of."""
    from scipy.optimize import linear_sum_assignment

    p, t = np.asarray(pseudo, dtype=np.int64), np.asarray(true, dtype=np.int64)
    rows, columns = int(p.max()) + 1, int(t.max()) + 1
    table = np.bincount(p * columns + t, minlength=rows * columns).reshape(rows, columns)
    recall = table / np.maximum(table.sum(axis=0), 1)
    result: Ints = recall.argmax(axis=1).astype(np.int64)
    left, right = linear_sum_assignment(-recall)
    result[left] = right
    return result


def group_recall(matched: ArrayLike, true: ArrayLike, y: ArrayLike) -> dict[str, float]:
    """Share of each group whose matched pseudo label is right, as "y,a"; empty groups absent."""
    m, t, labels = np.asarray(matched), np.asarray(true), np.asarray(y)
    result = {}
    for c in np.unique(labels):
        for a in np.unique(t):
            group = (labels == c) & (t == a)
            if group.any():
                result[f"{c},{a}"] = float(np.mean(m[group] == a))
    return result


def score_against_truth(
    pseudo: ArrayLike,
    true: ArrayLike,
    y: ArrayLike,
    splits: Mapping[str, ArrayLike],
    scalars: ArrayLike | None = None,
) -> dict[str, Any]:
    """Pseudo labels against the true attribute: columns over all rows, `splits` name rows of them.

    `recall` {split: {"y,a": r}}, `balanced_accuracy` {split: r}, `agreement` {split: r}, after the
    matching of values found on train; with scalars also `best_concept` for "attribute" and "class"
    on train. Empty splits are absent.
    """
    p, t, labels = np.asarray(pseudo), np.asarray(true), np.asarray(y)
    train = np.asarray(splits["train"])
    matching = match_values(p[train], t[train])
    unseen = max(int(p.max()) + 1 - len(matching), 0)
    matched = np.concatenate([matching, np.zeros(unseen, dtype=np.int64)])[p]
    found: dict[str, Any] = {
        "matching": {str(i): int(v) for i, v in enumerate(matching)},
        "recall": {},
        "balanced_accuracy": {},
        "agreement": {},
    }
    for split, chosen in splits.items():
        rows = np.asarray(chosen)
        if len(rows):
            found["recall"][split] = group_recall(matched[rows], t[rows], labels[rows])
            found["balanced_accuracy"][split] = balanced_accuracy(matched[rows], t[rows])
            found["agreement"][split] = float(np.mean(matched[rows] == t[rows]))
    if scalars is not None:
        s = np.asarray(scalars)[train]
        found["best_concept"] = {
            "attribute": best_concepts(s, t[train]),
            "class": best_concepts(s, labels[train]),
        }
    return found
