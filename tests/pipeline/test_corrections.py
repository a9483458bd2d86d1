import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from d2cp.pipeline.corrections import Corrections, CorrectionsError, load_corrections

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
        {**GOOD, "finding_flip": {"1": {"a": 0}, "01": {"a": 1}}},
        {**GOOD, "finding_flip": {"\u0663": {"a": 1}}},
        {**GOOD, "finding_flip": {"0": {"a": 1}}},
        '{"schema":1,"data":"abc","concepts_are_class":[],"flip":{"a":0,"a":1}}',
    ],
)
def test_refuses_what_is_not_a_corrections_file(tmp_path: Path, content: Any) -> None:
    with pytest.raises(CorrectionsError):
        load_corrections(_write(tmp_path, content))


def test_refuses_a_missing_file_and_bytes_that_are_not_text(tmp_path: Path) -> None:
    with pytest.raises(CorrectionsError, match="cannot read"):
        load_corrections(tmp_path / "absent.json")
    (tmp_path / "endless.json").symlink_to("/dev/zero")
    with pytest.raises(CorrectionsError, match="not a file"):
        load_corrections(tmp_path / "endless.json")
    (tmp_path / "corrections.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CorrectionsError):
        load_corrections(tmp_path / "corrections.json")


def test_check_names_what_does_not_fit() -> None:
    ids = ["a/1.png", "a/2.png"]
    good = Corrections(data="abc", concepts_are_class=(2,), flip={"a/2.png": 1})
    good.check(fingerprint="abc", ids=ids, concepts=3)
    with pytest.raises(CorrectionsError, match="another data set"):
        good.check(fingerprint="other", ids=ids, concepts=3)
    with pytest.raises(CorrectionsError, match="concept 2"):
        good.check(fingerprint="abc", ids=ids, concepts=2)
    with pytest.raises(CorrectionsError, match=r"not there: 'a/2.png'"):
        good.check(fingerprint="abc", ids=["a/1.png"], concepts=3)
    with pytest.raises(CorrectionsError, match="all 1 concepts"):
        Corrections(data="abc", concepts_are_class=(0,)).check(
            fingerprint="abc", ids=ids, concepts=1
        )


def test_flips_change_the_named_images_and_nothing_else() -> None:
    pseudo = np.array([0, 0, 1, 1])
    ids = ["w", "x", "y", "z"]
    flips = Corrections(data="", flip={"x": 1, "y": 0})
    assert flips.flipped(pseudo, ids, 2).tolist() == [0, 1, 0, 1]
    assert pseudo.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("value", [2, 7, 9_999])
def test_a_value_that_was_not_mined_is_refused(value: int) -> None:
    flips = Corrections(data="", flip={"x": value})
    with pytest.raises(CorrectionsError, match="from 0 to 1"):
        flips.flipped(np.array([0, 1]), ["x", "y"], 2)


@pytest.mark.parametrize("value", [10**9, 10**30])
def test_numbers_beyond_all_measure_are_refused_at_once(tmp_path: Path, value: int) -> None:
    for wrong in ({**GOOD, "flip": {"a": value}}, {**GOOD, "concepts_are_class": [value]}):
        with pytest.raises(CorrectionsError):
            load_corrections(_write(tmp_path, wrong))


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(changes=st.dictionaries(st.sampled_from(sorted(GOOD)), ANY, max_size=3), tail=st.text())
@settings(max_examples=300, deadline=None)
def test_whatever_it_holds_it_is_read_or_refused(changes: dict[str, Any], tail: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for text in (json.dumps({**GOOD, **changes}), json.dumps({**GOOD, **changes}) + tail):
            file = Path(folder) / "corrections.json"
            file.write_text(text, encoding="utf-8", errors="surrogatepass")
            try:
                found = load_corrections(file)
                found.check(fingerprint="abc", ids=["a/1.png"], concepts=6)
                found.flipped(np.zeros(1, np.int64), ["a/1.png"], 2)
            except CorrectionsError:
                pass


def test_nested_too_deeply_or_too_large_to_print(tmp_path: Path) -> None:
    for text in ("[" * 100_000, '{"schema": ' + "9" * 10_000 + "}"):
        with pytest.raises(CorrectionsError):
            load_corrections(_write(tmp_path, text))
