"""Writes that do not go through `write_bytes` meet a full disk in the same words."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from d2cp.core.files import whole_folder
from d2cp.core.metrics_log import MetricsLog
from d2cp.core.run_directory import RunDirectory
from d2cp.errors import RunError


def full(*_: object, **__: object) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_logged_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = MetricsLog(tmp_path)
    log("stage", 1, loss=0.5)
    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(RunError, match=r"metrics\.jsonl: No space left[\s\S]*free some space"):
        log("stage", 2, loss=0.25)


@pytest.mark.parametrize("which", [1, 2])
def test_the_name_of_a_finished_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: int
) -> None:
    """Either renaming fails: of the old folder out of the way, of the new one into its place."""
    real, calls = Path.rename, []

    def rename(path: Path, target: Path) -> Any:
        calls.append(path)
        return full() if len(calls) == which else real(path, target)

    run = RunDirectory(tmp_path)
    with run.writing("mine", "first") as folder:
        (folder / "a.txt").write_text("before")
    with pytest.raises(RunError, match="No space left"), run.writing("mine", "second") as folder:
        (folder / "a.txt").write_text("after")
        monkeypatch.setattr(Path, "rename", rename)
    assert run.manifest("mine")["inputs"] == "first"
    assert (run.artifact("mine") / "a.txt").read_text() == "before"
    assert [p.name for p in tmp_path.iterdir()] == ["mine"]


def test_lines_that_were_cut_short_are_forgotten(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path)
    log("stage", 1, loss=0.5)
    with log.path.open("ab") as file:
        file.write(b'[]\n{"stage": 3}\n\xff\xfe\n{"stage": "stage", "st')
    log.rewind("stage", 1)
    assert len(log.path.read_text().splitlines()) == 1


def test_a_torn_log_is_taken_over_as_far_as_it_is_whole(tmp_path: Path) -> None:
    (tmp_path / "ahead").mkdir()
    other, log = MetricsLog(tmp_path / "ahead"), MetricsLog(tmp_path)
    other("erm", 1, loss=0.5)
    other("features", 1, loss=0.1)
    with other.path.open("ab") as file:
        file.write(b'\xff\n{"stage": "erm", "step": 2, "loss": "x"}\n{"stage": "erm", "st')
    log.take_over("erm", other.path)
    assert log.path.read_text().splitlines() == [
        '{"stage": "erm", "step": 1, "loss": 0.5}',
        '{"stage": "erm", "step": 2}',
    ]


def test_a_folder_to_ship(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from safetensors import SafetensorError

    from d2cp.export.folded import save_deployed

    class Model:
        def save_pretrained(self, _: Path) -> None:
            raise SafetensorError("Error while serializing: I/O error: No space left on device")

    told = pytest.raises(RunError, match=r"No space left[\s\S]*another --to")
    with told, whole_folder(tmp_path / "model") as folder:
        save_deployed(Model(), None, folder)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())
