"""Names: which of them is there twice."""

import json
from itertools import chain

import numpy as np
import pytest

from d2cp.core.text import repeated
from d2cp.errors import D2CPError
from d2cp.evaluate.prediction_file import read_predictions
from d2cp.pipeline.corrections import load_corrections
from d2cp.scan.scanned_rows import ScannedRows

MANY = 200_000  # with a look back over all names for each, this test has no end


def test_the_first_that_was_there_before() -> None:
    assert repeated(iter("abcbca")) == "b"
    assert repeated(iter("abc")) is None


def test_one_name_twice_among_very_many_is_told_soon(tmp_path) -> None:
    names = [f"{k}.png" for k in range(MANY)]
    lines = [f"{name},cat" for name in chain(names, names[-1:])]
    (tmp_path / "p.csv").write_text("image,prediction\n" + "\n".join(lines))
    table = ScannedRows(names, np.zeros(MANY, np.int64), np.zeros(MANY, np.int8), ("cat", "dog"))
    with pytest.raises(D2CPError, match=f"two lines for {names[-1]}"):
        read_predictions(tmp_path / "p.csv", table, None)
    flips = ", ".join(f"{json.dumps(name)}: 0" for name in chain(names, names[-1:]))
    (tmp_path / "c.json").write_text(f'{{"schema": 1, "flip": {{{flips}}}}}')
    with pytest.raises(D2CPError, match="is given twice"):
        load_corrections(tmp_path / "c.json")
