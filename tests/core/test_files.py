import json
import os

import pytest

from d2cp.core.files import fingerprint, read_json, write_bytes, write_csv, write_json
from d2cp.errors import RunError


def test_a_failed_write_keeps_the_old_file_and_no_temporary(tmp_path, monkeypatch):
    path = tmp_path / "value.json"
    write_json(path, {"a": 1})

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match="No space left"):
        write_bytes(path, b"new")
    assert read_json(path) == {"a": 1}
    assert os.listdir(tmp_path) == ["value.json"]


def test_unreadable_json_is_named(tmp_path):
    path = tmp_path / "value.json"
    path.write_bytes(b"\xff\xfe{")
    with pytest.raises(RunError, match=r"value\.json"):
        read_json(path)
    with pytest.raises(RunError, match="does not exist"):
        read_json(tmp_path / "none.json")


def test_not_a_number_never_reaches_json(tmp_path):
    with pytest.raises(ValueError):
        write_json(tmp_path / "x.json", {"loss": float("nan")})
    assert not (tmp_path / "x.json").exists()


def test_csv_quotes_what_needs_it(tmp_path):
    write_csv(tmp_path / "x.csv", ["file", "class"], [['a,"b".png', "x\ny"]])
    assert (tmp_path / "x.csv").read_text() == 'file,class\n"a,""b"".png","x\ny"\n'


def test_fingerprint_ignores_key_order_only():
    assert fingerprint({"a": 1, "b": [2]}) == fingerprint(json.loads('{"b": [2], "a": 1}'))
    assert fingerprint({"a": 1}) != fingerprint({"a": 2})
