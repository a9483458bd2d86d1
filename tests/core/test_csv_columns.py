from pathlib import Path

import pytest

from d2cp.core.csv_columns import finite, read_columns, whole_number
from d2cp.errors import RunError

KINDS = {"row": whole_number, "score": finite}


def test_named_columns_are_read_and_others_left(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('name,score,row\n"a,b",0.5,1\nc,-2,2\n')
    assert read_columns(path, KINDS, {"absent": str}) == {"row": [1, 2], "score": [0.5, -2.0]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cannot be read"),
        ("row\n1\n", "no column 'score'"),
        ("row,score,row\n1,2,3\n", "a column twice"),
        ("row,score\n1\n", "row 2 has 1 fields"),
        ("row,score\nx,1\n", "invalid literal"),
        ("row,score\n1,nan\n", "not finite"),
        (f"row,score\n{10**30},1\n", "beyond 64 bits"),
        ('row,score\n1,"2\n', "cannot be read"),
        ("row,score\n1,\0\n", "cannot be read"),
        ("row,score\n1,\xff\n", "cannot be read"),
    ],
    ids=repr,
)
def test_a_file_that_was_changed_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "mine" / "a.csv"
    path.parent.mkdir()
    path.write_text(text, encoding="latin-1")
    with pytest.raises(RunError, match=f"{said}[\\s\\S]*delete {path.parent} and run again"):
        read_columns(path, KINDS)
