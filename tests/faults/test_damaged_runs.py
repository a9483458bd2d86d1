"""Files of a finished run changed by a disk, a hand, or somebody who made the checksums fit."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from d2cp.core.files import read_json, sha256
from d2cp.core.run_directory import RunDirectory
from d2cp.data import load_table
from damage import attack, command, refit, report
from report_artifacts import write_comparison, write_run


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("good") / "run"
    write_run(path, load_table("cmnist", limit=24), place=None)
    assert command("report", path)[0] == 0
    return path


def copy(good: Path, to: Path) -> Path:
    shutil.copytree(good, to)
    return to


def test_no_damage_ends_in_a_traceback(good: Path, tmp_path: Path) -> None:
    commands = [("show", "RUN"), ("show", "RUN", "--json"), ("report", "RUN"), ("evaluate", "RUN")]
    tally = attack(good, tmp_path, [*commands, ("export", "RUN", "--to", "OUT")], 40, seed=1)
    assert not tally.foreign and not tally.no_remedy, report(tally)
    assert tally.ends["5"] > 10 and tally.ends["0"] > 5


CHANGES: dict[str, tuple[str, Any]] = {
    "verdict": ("mine/summary.json", {"verdict": "maybe"}),
    "values": ("mine/summary.json", {"values": 10**12}),
    "recall": ("mine/summary.json", {"recall": {"train": {"9,9": 1.0}}}),
    "concepts": ("mine/summary.json", {"concepts": "all"}),
    "classes": ("data/summary.json", {"class_names": ["one"]}),
    "counts": ("data/summary.json", {"counts": {"train": {"0;1": 3}}}),
    "names": ("data/summary.json", {"class_names": None}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_wrong_form_with_right_checksums_is_told(good: Path, tmp_path: Path, name: str) -> None:
    run = copy(good, tmp_path / "run")
    file, change = CHANGES[name]
    path = run / file
    path.write_text(json.dumps({**read_json(path), **change}))
    refit(run, path)
    codes = {}
    for word in ("show", "report"):
        codes[word], said = command(word, run)
        assert codes[word] == 0 or "to do:" in said
    assert 5 in codes.values()


def test_a_changed_file_is_not_shown_reported_or_exported(good: Path, tmp_path: Path) -> None:
    """`choice.json` decides what is exported; a word of it changed by hand is found."""
    run = copy(good, tmp_path / "run")
    path = run / "evaluate" / "results.json"
    path.write_text(path.read_text().replace("0.9", "1.0", 1))
    for words in (("show", run), ("report", run), ("evaluate", run)):
        code, said = command(*words)
        assert code == 5 and "has changed since it was written" in said
        assert f"delete {run / 'evaluate'} and run again" in said


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "a/../../outside"])
def test_a_manifest_cannot_name_files_elsewhere(good: Path, tmp_path: Path, name: str) -> None:
    run = copy(good, tmp_path / "run")
    manifest = run / "mine" / "manifest.json"
    whole = read_json(manifest)
    whole["files"][name] = {"bytes": 1, "sha256": "0"}
    manifest.write_text(json.dumps(whole))
    code, said = command("show", run)
    assert code == 5 and "outside of its folder" in said


def test_a_file_name_that_no_disk_can_hold_is_told(good: Path, tmp_path: Path) -> None:
    run = copy(good, tmp_path / "run")
    manifest = run / "mine" / "manifest.json"
    whole = read_json(manifest)
    whole["files"]["x" * 5000] = {"bytes": 1, "sha256": "0"}
    manifest.write_text(json.dumps(whole))
    code, said = command("report", run)
    assert code == 5 and "cannot be read: File name too long" in said and len(said) < 2000


def test_a_link_out_of_the_run_is_not_followed(good: Path, tmp_path: Path) -> None:
    run = copy(good, tmp_path / "run")
    secret = tmp_path / "secret.json"
    path = run / "data" / "summary.json"
    path.rename(secret)
    path.symlink_to(secret)
    assert sha256(path) == RunDirectory(run).manifest("data")["files"]["summary.json"]["sha256"]
    code, said = command("show", run)
    assert code == 5 and "leads out of the run" in said


def test_a_picture_that_is_none_is_told(good: Path, tmp_path: Path) -> None:
    run = copy(good, tmp_path / "run")
    path = next((run / "mine" / "pictures").glob("swap*.png"))
    path.write_bytes(b"<html>")
    refit(run, path)
    code, said = command("report", run)
    assert code == 5 and "cannot be shown" in said and path.name in said


@pytest.mark.parametrize("change", [{"summary": 3}, {"results": [{}]}, {"paired": {"test": []}}])
def test_a_damaged_comparison_is_told(tmp_path: Path, change: dict[str, Any]) -> None:
    run = write_comparison(tmp_path / "compare")
    path = run.path / "compare.json"
    assert command("report", run.path)[0] == 0
    path.write_text(json.dumps({**read_json(path), **change}))
    code, said = command("report", run.path)
    assert code == 5 and "d2cp compare` command again" in said
