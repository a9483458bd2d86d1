"""A model's leaning on a finding: shares by hand, the file's forms and its faults."""

from pathlib import Path

import numpy as np
import pytest

from d2cp.errors import DataError
from d2cp.evaluate.leaning import difference, leaning
from d2cp.evaluate.prediction_file import read_predictions
from d2cp.scan.finding import Finding, Reader
from d2cp.scan.scanned_rows import ScannedRows

Y = np.array([0, 1] * 20)
VALUE = np.where(np.arange(40) % 4 < 2, Y, 1 - Y)
SPLIT = np.where(np.arange(40) < 8, 0, 2).astype(np.int8)
ROWS = ScannedRows([f"img/{i}.png" for i in range(40)], Y, SPLIT, ("cat", "dog"))


def a_finding() -> Finding:
    score = np.where(VALUE == 1, 1.0, -1.0) * np.arange(1, 41)
    return Finding(
        rank=1,
        name="overall colour: bluer",
        lens="colour",
        lenses=("colour",),
        outcome="found",
        strength=0.5,
        p_value=0.01,
        agreement=0.9,
        value_names=("less blue", "bluer"),
        threshold=0.0,
        stability=1.0,
        evidence={},
        reasons=(),
        value=VALUE,
        score=score,
        scores=score.astype(np.float32)[:, None],
        reader=Reader(weight={}, intercept=np.zeros(1, np.float32), centre={}, scale={}),
    )


def test_a_model_that_answers_by_the_finding_leans_and_its_victims_are_listed() -> None:
    found = leaning(VALUE, ROWS, [a_finding()])
    lean = found["findings"][0]
    fresh = SPLIT != 0
    assert found["images"] == 32 and found["splits"] == ["test"] and found["accuracy"] == 0.5
    assert lean["gap"] == 1 and lean["leans"] and "leans on it" in lean["sentence"]
    against = np.flatnonzero(fresh & (VALUE != Y))
    assert {v["image"] for v in lean["victims"]} == {ROWS.ids[i] for i in against}
    assert lean["victims"][0] == {
        "image": ROWS.ids[against[-1]],  # the finding is surest of it
        "split": "test",
        "class": ("cat", "dog")[Y[against[-1]]],
        "predicted": ("cat", "dog")[VALUE[against[-1]]],
    }


def test_a_right_model_leans_on_nothing() -> None:
    lean = leaning(Y, ROWS, [a_finding()])["findings"][0]
    assert lean["gap"] == 0 and not lean["leans"] and not lean["victims"]
    assert "No leaning" in lean["sentence"]


def test_difference_is_newcombes() -> None:
    """Newcombe (1998), method 10, example (a): 56/70 against 48/80."""
    gap, (low, high) = difference(np.arange(70) < 56, np.arange(80) < 48)
    assert gap == pytest.approx(0.2)
    assert (low, high) == (pytest.approx(0.0524, abs=5e-5), pytest.approx(0.3339, abs=5e-5))


def write(path: Path, header: str, cell, rows=range(40)) -> Path:
    path.write_text(header + "\n" + "".join(f"img/{i}.png,{cell(i)}\n" for i in rows))
    return path


def test_classes_numbers_and_probabilities_are_read_alike(tmp_path: Path) -> None:
    file = tmp_path / "p.csv"
    for header, cell in (
        ("image,prediction", lambda i: ROWS.class_names[VALUE[i]]),
        ("id,anything", lambda i: VALUE[i]),
        ("image,dog,cat", lambda i: f"{0.3 + 0.4 * VALUE[i]},{0.7 - 0.4 * VALUE[i]}"),
    ):
        assert read_predictions(write(file, header, cell), ROWS).tolist() == VALUE.tolist()
    write(file, "id,erm,erm_p,d2cp", lambda i: f"{VALUE[i]},0.9,{Y[i]}")
    assert read_predictions(file, ROWS, "d2cp").tolist() == Y.tolist()
    some = read_predictions(write(file, "id,erm", lambda i: Y[i], range(8, 40)), ROWS)
    assert (some[:8] == -1).all() and some[8:].tolist() == Y[8:].tolist()


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        ("image,prediction\nelsewhere.png,cat\n", None, "elsewhere.png"),
        ("image,prediction\nimg/9.png,cat\n", None, "31 of 32 images of split 'test'"),
        ("image,prediction\nimg/9.png,cow\n", None, "no class is called cow"),
        ("image,prediction\nimg/9.png,cat\nimg/9.png,cat\n", None, "two lines for img/9.png"),
        ("id,erm,d2cp\nimg/9.png,0,0\n", None, "--prediction-column"),
        ("id,erm\nimg/9.png,0\n", "erk", "no column 'erk'"),
        ("image,cat,dog\nimg/9.png,much,0\n", None, "expected: a number"),
        ("image,cat,dog\nimg/9.png,0,nan\n", None, "line 2: the probability of dog is nan"),
        ("image,cat,cat\nimg/9.png,0,1\n", None, "a column twice"),
        ("image\nimg/9.png\n", None, "none beside the images"),
        ("image,prediction\n", None, "no rows"),
    ],
)
def test_faults_are_named(tmp_path: Path, text: str, column: str | None, says: str) -> None:
    file = tmp_path / "p.csv"
    file.write_text(text)
    with pytest.raises(DataError, match=r"p\.csv") as caught:
        read_predictions(file, ROWS, column)
    assert says in str(caught.value) and caught.value.remedy


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not a file"):
        read_predictions(tmp_path / "none.csv", ROWS)
