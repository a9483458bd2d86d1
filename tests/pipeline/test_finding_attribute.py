"""Which findings a run uses when it is not told."""

import numpy as np

from d2cp.pipeline.corrections import Corrections
from d2cp.pipeline.finding_attribute import MOST_CELLS, all_found
from d2cp.scan.finding import Finding, Outcome, Reader, Scan


def finding(rank: int, outcome: Outcome = "found", values: int = 2) -> Finding:
    return Finding(
        **{"rank": rank, "name": f"cue {rank}", "lens": "tint", "lenses": ("tint",)},
        **{"strength": 0.9, "p_value": 0.005, "agreement": 0.9, "stability": 1.0},
        **{
            "value_names": tuple(f"value {v}" for v in range(values)),
            "reasons": (),
            "evidence": {},
        },
        outcome=outcome,
        threshold=0.0 if values == 2 else None,
        value=np.zeros(4, np.int64),
        score=np.zeros(4),
        scores=np.zeros((4, 1), np.float32),
        reader=Reader(weight={}, intercept=np.zeros(1, np.float32), centre={}, scale={}),
    )


def ranks(*findings: Finding, corrected: Corrections | None = None) -> list[int]:
    scan = Scan(findings=findings, bank=None, size=24)  # type: ignore[arg-type]
    return [f.rank for f in all_found(scan, corrected)]


def test_all_that_are_found_and_nothing_else():
    assert ranks() == []
    assert ranks(finding(1, "weak"), finding(2, "none")) == []
    assert ranks(finding(1), finding(2, "weak"), finding(3)) == [1, 3]


def test_not_what_a_person_calls_the_class():
    denied = Corrections(data="", findings_are_class=(1,))
    assert ranks(finding(1), finding(2), corrected=denied) == [2]


def test_as_long_as_their_combinations_are_not_too_many():
    assert ranks(*(finding(rank) for rank in range(1, 7))) == [1, 2, 3, 4]
    assert ranks(finding(1, values=8), finding(2, values=8), finding(3)) == [1, 3]
    many = finding(1, values=MOST_CELLS + 1)  # the strongest is used however many it has
    assert ranks(many, finding(2)) == [1]
