from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from d2cp.data.assemble import PLAIN, safe_name
from d2cp.errors import DataError

ROOT = Path("/data")


@given(st.text(alphabet="ab.-_/\\ :é\0~", max_size=12))
def test_a_name_that_is_taken_as_it_stands_is_normal_and_inside(name: str) -> None:
    if PLAIN.fullmatch(name):
        path = PurePosixPath(name.replace("\\", "/"))
        assert str(path) == name and not path.is_absolute() and ".." not in path.parts
        assert not re.match(r"[A-Za-z]:", name) and "\0" not in name


@pytest.mark.parametrize(
    ("name", "normal"),
    [
        ("img/01.png", "img/01.png"),
        ("./img//01.png", "img/01.png"),
        ("img/.hidden.png", "img/.hidden.png"),
        ("/data/img/01.png", "img/01.png"),
    ],
)
def test_names_are_made_normal(name: str, normal: str) -> None:
    assert safe_name(name, "row 1", ROOT) == normal


@pytest.mark.parametrize(
    "name", ["", "..", "../a", "a/../b", "a/..", "/etc/passwd", "C:/a", "a\0b", "\\a"]
)
def test_names_outside_are_refused(name: str) -> None:
    with pytest.raises(DataError, match="path inside"):
        safe_name(name, "row 1", ROOT)
