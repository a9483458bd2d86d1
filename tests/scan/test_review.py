"""A label error contradicts every finding, a minority image one of them."""

import numpy as np

from d2cp.scan.finding import Finding, Reader
from d2cp.scan.review import share_below, suspected_labels


def finding(
    rank: int, lens: str, score: np.ndarray, outcome: str = "found", agreement: float = 0.9
) -> Finding:
    return Finding(
        rank=rank,
        name=lens,
        lens=lens,
        lenses=(lens,),
        outcome=outcome,  # type: ignore[arg-type]
        strength=0.5,
        p_value=0.01,
        agreement=agreement,
        value_names=("low", "high"),
        threshold=0.0,
        stability=1.0,
        evidence={},
        reasons=(),
        value=(score > 0).astype(np.int64),
        score=score.astype(np.float64),
        scores=score.astype(np.float32)[:, None],
        reader=Reader(weight={}, intercept=np.zeros(1, np.float32), centre={}, scale={}),
    )


def test_only_what_every_lens_contradicts_surely_is_a_suspect() -> None:
    draw = np.random.default_rng(0)
    y = np.arange(100) % 2
    sign = 2 * y - 1
    one, two = sign * draw.uniform(0.5, 1, 100), sign * draw.uniform(0.5, 1, 100)
    one[4], two[4] = -2 * sign[4], -2 * sign[4]  # the label is wrong
    one[7] = -2 * sign[7]  # a minority image of the first finding
    one[9], two[9] = -0.1 * sign[9], -0.1 * sign[9]  # both contradict it, neither is sure
    rows, sure = suspected_labels((finding(1, "colour", one), finding(2, "border", two)), y)
    assert rows.tolist() == [4] and sure[0] > 0.9


def test_one_lens_alone_accuses_nobody() -> None:
    y = np.arange(20) % 2
    score = np.where(y == 1, 1.0, -1.0)
    score[0] = 3
    first = finding(1, "colour", score)
    assert not len(suspected_labels((first, finding(2, "colour", score)), y)[0])
    assert not len(suspected_labels((first, finding(2, "border", score, "none")), y)[0])
    hardly = finding(2, "border", score, "weak", agreement=0.54)
    assert not len(suspected_labels((first, hardly), y)[0])
    assert len(suspected_labels((first, finding(2, "border", score)), y)[0]) == 1


def test_share_below_counts_within_a_value() -> None:
    sure = np.array([1.0, 2.0, 3.0, 9.0])
    assert share_below(sure, np.array([0, 0, 0, 1])).tolist() == [0, 1 / 3, 2 / 3, 0]
