"""A file that holds a digest of itself: a figure changed within its form is found out."""

import json
from pathlib import Path
from typing import TypedDict

import pytest

from d2cp.core.sealed import read_sealed, write_sealed
from d2cp.errors import RunError


class Score(TypedDict):
    name: str
    value: float
    by_seed: dict[str, float]


CONTENT = {"name": "é", "value": 0.1 + 0.2, "by_seed": {0: 0.5, 10: 1.0, 2: 0.25}}


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_sealed(path, CONTENT)
    by_seed = {"0": 0.5, "10": 1.0, "2": 0.25}
    assert read_sealed(path, Score, remedy="") == {**CONTENT, "by_seed": by_seed}


@pytest.mark.parametrize("change", [{"value": 0.31}, {"more": 1}, {"digest": "0"}, {"name": "e"}])
def test_a_change_within_the_form_is_told(tmp_path: Path, change: dict[str, object]) -> None:
    path = tmp_path / "a.json"
    write_sealed(path, CONTENT)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(RunError, match=r"has changed since[\s\S]*delete it"):
        read_sealed(path, Score, remedy="delete it")


def test_a_file_of_before_there_were_digests_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"name": "a", "value": 1, "by_seed": {}}')
    assert read_sealed(path, Score, remedy="")["value"] == 1
