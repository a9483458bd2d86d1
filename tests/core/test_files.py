import json
import os
from pathlib import Path

import pytest

from d2cp.core.files import (
    fingerprint,
    read_json,
    sweep,
    whole_folder,
    write_bytes,
    write_csv,
    write_json,
)
from d2cp.data.delimited import read_text
from d2cp.errors import DataError, RunError


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


@pytest.mark.parametrize("mask, file, folder", [(0o022, 0o644, 0o755), (0o007, 0o660, 0o770)])
def test_modes_follow_the_umask(tmp_path, mask, file, folder):
    before = os.umask(mask)
    try:
        write_bytes(tmp_path / "value", b"x")
        with whole_folder(tmp_path / "stage") as made:
            write_bytes(made / "value", b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "value").stat().st_mode & 0o777 == file
    assert (tmp_path / "stage").stat().st_mode & 0o777 == folder


def test_a_folder_is_replaced_whole_or_kept(tmp_path):
    target = tmp_path / "model"
    for text in ("first", "second"):
        with whole_folder(target) as made:
            (made / "value").write_text(text)
    with pytest.raises(ZeroDivisionError), whole_folder(target) as made:
        (made / "value").write_text("third")
        _ = 1 / 0
    assert (target / "value").read_text() == "second" and os.listdir(tmp_path) == ["model"]


def test_what_a_killed_writer_left_is_swept(tmp_path):
    (tmp_path / ".value.json.0a1b.tmp").write_text("half")
    (tmp_path / ".model.writing-12ab").mkdir()
    (tmp_path / ".profile").write_text("a person's")
    with whole_folder(tmp_path / "model"):
        pass
    assert sorted(os.listdir(tmp_path)) == [".profile", ".value.json.0a1b.tmp", "model"]
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / ".x.tmp").write_text("half")
    sweep(tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".profile", "deep", "model"]
    sweep(tmp_path, below=True)
    assert not list((tmp_path / "deep" / "er").iterdir())


@pytest.mark.parametrize("kind", ["pipe", "link to a device", "folder"])
def test_what_may_have_no_end_is_not_read(tmp_path, kind):
    path = tmp_path / "a.json"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(RunError, match="not readable as JSON: it is not a file"):
        read_json(path)
    with pytest.raises(DataError, match="is not a file"):
        read_text(path)


def test_nothing_takes_the_place_of_a_pipe_or_a_device(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/null")
    places = [tmp_path / "pipe", tmp_path / "device", Path("/dev/null"), Path("/dev/stdout")]
    for path in places:
        before = path.lstat().st_mode
        with pytest.raises(RunError, match="device or a pipe"):
            write_bytes(path, b"x")
        assert path.lstat().st_mode == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["device", "pipe"]


def test_a_folder_in_the_place_of_a_file_is_told_and_kept(tmp_path):
    (tmp_path / "report.html" / "inside").mkdir(parents=True)
    with pytest.raises(RunError, match="folder of that name") as caught:
        write_bytes(tmp_path / "report.html", b"x")
    assert f"delete {tmp_path / 'report.html'}," in caught.value.remedy
    assert [p.name for p in tmp_path.rglob("*")] == ["report.html", "inside"]
