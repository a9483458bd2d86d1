from __future__ import annotations

import numpy as np
import pytest

from d2cp.mine.evidence import agreeing, cell_counts, confident_disagreement, resample
from d2cp.mine.verdict import Verdict, judge

CLEAR = {
    "images": 1000,
    "classes": 2,
    "concepts": 20,
    "mined": 1,
    "chance": 0.5,
    "accuracy_all": 0.96,
    "accuracy_mined": 0.95,
    "signal_all": 0.7,
    "signal_mined": 0.68,
    "signal_share": 0.97,
    "agreement": 0.95,
    "disagreeing": 50,
    "confident_disagreement": 0.9,
    "confident_disagreement_error": 0.2,
    "bic_gain": 1.0,
    "separation": 5.0,
    "stability_concepts": 1.0,
    "stability_labels": 0.99,
    "values": 2,
    "smallest_cell": 20,
    "empty_cells": 0,
}


def test_a_clear_case():
    verdict = judge(CLEAR, (7,))
    assert verdict.outcome == "found" and verdict.reasons == ()
    assert verdict.sentence == (
        "Concept 7 predicts the class of 95.0% of the training images; "
        "50 images (5.0%) go against it."
    )
    assert Verdict.from_dict(verdict.to_dict()) == verdict
    assert "Concepts 7 and 2 predict" in judge(CLEAR, (7, 2)).sentence


@pytest.mark.parametrize(("change", "outcome", "says"), [
    ({"disagreeing": 0}, "none", "the class itself"),
    ({"values": 1}, "none", "same pseudo label"),
    ({"signal_mined": 0.02, "accuracy_mined": 0.52}, "none", "held-out accuracy 52%, chance 50%"),
    ({"confident_disagreement": 0.1, "confident_disagreement_error": 0.1}, "none", "crowd"),
    ({"confident_disagreement": 0.1, "confident_disagreement_error": 0.4}, "weak", "crowd"),
    ({"disagreeing": 3}, "weak", "only 3 images"),
    ({"separation": 1.2}, "weak", "two clear groups"),
    ({"empty_cells": 1}, "weak", "no image"),
    ({"stability_labels": 0.6}, "weak", "resampled"),
])  # fmt: skip
def test_every_reason(change, outcome, says):
    verdict = judge({**CLEAR, **change}, (7,))
    assert verdict.outcome == outcome
    assert says in verdict.sentence and len(verdict.reasons) == 1


def test_two_mild_signs_of_the_class_are_enough():
    both = {**CLEAR, "confident_disagreement": 0.3, "separation": 1.5}
    assert judge(both, (7,)).outcome == "none"
    assert judge({**both, "separation": 3.0}, (7,)).outcome == "weak"
    assert judge({**both, "classes": 10}, (7,)).outcome == "weak"


def test_confident_disagreement_tells_stray_labels_from_errors_at_the_boundary():
    generator = np.random.default_rng(0)
    margin = generator.uniform(0.5, 1, size=4000)
    side = generator.integers(2, size=4000)
    probability = np.where(side[:, None] == [0, 1], margin[:, None], 1 - margin[:, None])
    stray = np.where(generator.random(4000) < 0.1, 1 - side, side)
    ratio, error = confident_disagreement(probability, stray)
    assert ratio == pytest.approx(1, abs=3 * error) and error < 0.15
    errors = np.where(generator.random(4000) > margin, 1 - side, side)
    assert confident_disagreement(probability, errors)[0] < 0.4
    assert confident_disagreement(probability, side) == (0.0, 0.0)


def test_cells_and_agreement():
    y, labels = np.array([0, 0, 0, 1, 1, 2]), np.array([1, 1, 0, 0, 0, 2])
    cells = cell_counts(y, labels, 3, 3)
    assert cells.tolist() == [[1, 2, 0], [2, 0, 0], [0, 0, 1]]
    assert agreeing(y, labels, cells).tolist() == [0, 1, 3, 4, 5]


def test_resample_keeps_class_counts_and_repeats():
    y = np.repeat([0, 1], [40, 7])
    rows = resample(y, 0, 3)
    assert np.bincount(y[rows]).tolist() == [40, 7]
    assert np.array_equal(rows, resample(y, 0, 3))
    assert not np.array_equal(rows, resample(y, 0, 4))
