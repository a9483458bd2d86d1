import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from d2cp.pipeline.corrections import Corrections, CorrectionsError, apply_flips, load_corrections

GOOD = {"schema": 1, "data": "abc", "concepts_are_class": [5, 2, 5], "flip": {"a/1.png": 1}}


def _write(path: Path, value: Any) -> Path:
    file = path / "corrections.json"
    file.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return file


def test_loads_what_the_report_saves(tmp_path: Path) -> None:
    loaded = load_corrections(_write(tmp_path, GOOD))
    assert loaded == Corrections(data="abc", concepts_are_class=(2, 5), flip={"a/1.png": 1})


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '"text"',
        {**GOOD, "extra": 1},
        {k: v for k, v in GOOD.items() if k != "flip"},
        {**GOOD, "schema": 2},
        {**GOOD, "schema": True},
        {**GOOD, "data": 7},
        {**GOOD, "concepts_are_class": "3"},
        {**GOOD, "concepts_are_class": [-1]},
        {**GOOD, "concepts_are_class": [True]},
        {**GOOD, "flip": [["a", 1]]},
        {**GOOD, "flip": {"a": 1.0}},
        {**GOOD, "flip": {"a": -1}},
        {**GOOD, "flip": {"a": None}},
        '{"schema":1,"data":"abc","concepts_are_class":[],"flip":{"a":0,"a":1}}',
    ],
)
def test_refuses_what_is_not_a_corrections_file(tmp_path: Path, content: Any) -> None:
    with pytest.raises(CorrectionsError):
        load_corrections(_write(tmp_path, content))


def test_refuses_a_missing_file_and_bytes_that_are_not_text(tmp_path: Path) -> None:
    with pytest.raises(CorrectionsError, match="cannot read"):
        load_corrections(tmp_path / "absent.json")
    (tmp_path / "corrections.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CorrectionsError):
        load_corrections(tmp_path / "corrections.json")


def test_check_names_what_does_not_fit() -> None:
    ids = ["a/1.png", "a/2.png"]
    good = Corrections(data="abc", concepts_are_class=(2,), flip={"a/2.png": 1})
    good.check(fingerprint="abc", ids=ids, concepts=3, values=2)
    with pytest.raises(CorrectionsError, match="another data set"):
        good.check(fingerprint="other", ids=ids, concepts=3)
    with pytest.raises(CorrectionsError, match="concept 2"):
        good.check(fingerprint="abc", ids=ids, concepts=2)
    with pytest.raises(CorrectionsError, match=r"not there: 'a/2.png'"):
        good.check(fingerprint="abc", ids=["a/1.png"], concepts=3)
    with pytest.raises(CorrectionsError, match="the value 1"):
        good.check(fingerprint="abc", ids=ids, concepts=3, values=1)


def test_flips_change_the_named_images_and_nothing_else() -> None:
    pseudo = np.array([0, 0, 1, 1])
    ids = ["w", "x", "y", "z"]
    assert apply_flips(pseudo, ids, {"x": 1, "y": 0}).tolist() == [0, 1, 0, 1]
    assert pseudo.tolist() == [0, 0, 1, 1]
