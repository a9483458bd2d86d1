import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from d2cp.core.metrics_log import MetricsLog
from d2cp.core.run_directory import RunDirectory
from d2cp.errors import RunError


def write(run: RunDirectory, stage: str, text: str, inputs: str = "i") -> None:
    with run.writing(stage, inputs) as folder:
        (folder / "value.txt").write_text(text)


def test_an_artifact_appears_whole_or_not_at_all(tmp_path):
    run = RunDirectory(tmp_path)
    write(run, "mine", "first")
    with pytest.raises(ZeroDivisionError), run.writing("mine", "other") as folder:
        (folder / "value.txt").write_text("second")
        _ = 1 / 0
    assert (run.artifact("mine") / "value.txt").read_text() == "first"
    assert [p.name for p in tmp_path.iterdir()] == ["mine"]


def test_current_means_same_inputs_and_same_bytes(tmp_path):
    run = RunDirectory(tmp_path)
    assert not run.is_current("mine", "i")
    write(run, "mine", "first")
    assert run.is_current("mine", "i") and not run.is_current("mine", "j")
    (tmp_path / "mine" / "value.txt").write_text("fIrst")
    assert not run.is_current("mine", "i")
    with pytest.raises(RunError, match="has changed"):
        run.artifact("mine")
    write(run, "mine", "again")
    assert (run.artifact("mine") / "value.txt").read_text() == "again"


def test_one_file_of_a_stage_is_verified_by_itself(tmp_path):
    run = RunDirectory(tmp_path)
    with run.writing("mine", "i") as folder:
        (folder / "small.json").write_text("{}")
        (folder / "large").write_text("x")
    (tmp_path / "mine" / "large").write_text("y")
    assert run.file("mine", "small.json").read_text() == "{}"
    (tmp_path / "mine" / "small.json").write_text("[]")
    with pytest.raises(RunError, match="has changed"):
        run.file("mine", "small.json")
    with pytest.raises(RunError, match="not a file that the stage wrote"):
        run.file("mine", "other.json")


def test_a_missing_file_is_named(tmp_path):
    run = RunDirectory(tmp_path)
    write(run, "mine", "x")
    (tmp_path / "mine" / "value.txt").unlink()
    with pytest.raises(RunError, match=r"value\.txt is missing"):
        run.artifact("mine")


def test_a_second_process_is_refused(tmp_path):
    code = (
        "import sys; from d2cp.core.run_directory import RunDirectory\n"
        "from d2cp.errors import RunError\n"
        "try:\n    with RunDirectory(sys.argv[1]).locked(): print('got it')\n"
        "except RunError as e: print(e)"
    )

    def other() -> str:
        return subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
        ).stdout

    with RunDirectory(tmp_path).locked():
        assert f"in use by process {os.getpid()}" in other()
    assert other().strip() == "got it"


def test_strays_of_a_killed_writer_are_removed(tmp_path):
    stray = tmp_path / ".mine.writing-abc"
    stray.mkdir()
    (stray / "half").write_text("x")
    with RunDirectory(tmp_path).locked():
        assert not stray.exists()


def test_temporaries_of_a_killed_writer_are_removed_wherever_the_run_writes(tmp_path):
    for place in (".", "checkpoints/debias", "cells", "search"):
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
        (tmp_path / place / ".x.json.ab12.tmp").write_text("half")
    with RunDirectory(tmp_path).locked():
        assert not list(tmp_path.rglob("*.tmp"))


def test_a_lock_that_is_a_link_is_refused_and_its_target_kept(tmp_path):
    (tmp_path / "precious").write_text("keep me")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".lock").symlink_to(tmp_path / "precious")
    with pytest.raises(RunError, match="cannot write"), RunDirectory(tmp_path / "run").locked():
        pass
    assert (tmp_path / "precious").read_text() == "keep me"


def test_another_version_is_refused_unless_forced(tmp_path):
    run = RunDirectory(tmp_path)
    run.start({"config": {"seed": 1}, "version": "1"})
    with pytest.raises(RunError, match="another version: version was '1', now '2'"):
        run.start({"config": {"seed": 1}, "version": "2"})
    assert run.description["version"] == "1"
    run.start({"config": {"seed": 1}, "version": "2"}, force=True)
    assert run.description["version"] == "2"


def test_changed_settings_are_refused_unless_forced(tmp_path):
    run = RunDirectory(tmp_path)
    run.start({"config": {"debias": {"lr": 0.1}}, "version": "1"})
    run.start({"config": {"debias": {"lr": 0.1}}, "version": "1"})
    with pytest.raises(RunError, match=r"config\.debias\.lr was 0\.1, now 0\.2"):
        run.start({"config": {"debias": {"lr": 0.2}}, "version": "1"})
    run.start({"config": {"debias": {"lr": 0.2}}, "version": "1"}, force=True)
    assert run.description["config"]["debias"]["lr"] == 0.2


def test_a_data_set_may_move_but_not_change(tmp_path):
    run = RunDirectory(tmp_path)
    run.start({"data": {"fingerprint": "f", "path": "here"}})
    run.start({"data": {"fingerprint": "f", "path": "there"}})
    with pytest.raises(RunError, match="fingerprint was 'f', now 'g'"):
        run.start({"data": {"fingerprint": "g", "path": "here"}})


def test_not_a_run_says_how_to_make_one(tmp_path):
    with pytest.raises(RunError, match="d2cp run"):
        RunDirectory.open(tmp_path)


def test_a_file_in_the_way_of_the_run_is_an_error_not_a_traceback(tmp_path):
    (tmp_path / "file").write_text("x")
    with (
        pytest.raises(RunError, match="cannot write"),
        RunDirectory(tmp_path / "file" / "run").locked(),
    ):
        pass


def test_metrics_rewind_to_the_step_of_the_checkpoint(tmp_path):
    log = MetricsLog(tmp_path)
    for step in range(4):
        log("disentangle", step, loss=step / 2)
        log("debias", step, loss=1.0)
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"stage": "disentangle", "st')
    log.rewind("disentangle", 1)
    lines = Path(tmp_path / "metrics.jsonl").read_text().splitlines()
    assert sum('"disentangle"' in line for line in lines) == 2
    assert sum('"debias"' in line for line in lines) == 4


def test_another_preset_is_blamed_on_the_preset_not_on_the_data(tmp_path):
    """A preset can change the size at which images are read, and with it the data's identity."""
    run = RunDirectory(tmp_path)
    before = {
        "data": {"fingerprint": "one"},
        "config": {"backbone": "embedded", "preset": "demo", "seed": 0},
    }
    run.start(before)
    now = {"backbone": "other", "preset": "photo-cpu", "seed": 0}
    with pytest.raises(RunError, match=r"config\.preset was 'demo', now 'photo-cpu'"):
        run.start({"data": {"fingerprint": "two"}, "config": now})


def test_only_settings_that_took_effect_bind(tmp_path):
    run = RunDirectory(tmp_path / "run")
    run.path.mkdir()
    first = {"seed": 0, "preset": "demo", "mine": {"folds": 2}, "debias": {"epochs": 5, "lr": 1.0}}
    other = {**first, "debias": {"epochs": 9, "lr": 1.0}}
    run.start({"config": first})
    run.start({"config": other}, settled={"seed", "mine"})  # stage 2 was not begun
    assert run.description["config"] == other
    with pytest.raises(RunError, match=r"config\.debias\.epochs was 9, now 5"):
        run.start({"config": first}, settled={"seed", "debias"})
    run.start({"config": first}, settled={"seed", "debias"}, force=True)
    assert run.description["config"] == other  # no stage was redone yet: the old command goes on
    run.start({"config": other}, settled={"seed", "debias"})
    run.record(["seed", "debias.epochs"], first)
    assert run.description["config"] == first


def test_a_comparison_says_that_it_is_one(tmp_path):
    run = RunDirectory(tmp_path / "all")
    run.path.mkdir()
    run.start({"config": {}})
    (run.path / "compare.json").write_text("{}")
    with pytest.raises(RunError, match="is a comparison") as refused:
        run.artifact("evaluate")
    assert f"d2cp show {run.path}" in refused.value.remedy


def test_a_refused_run_leaves_no_trace_of_its_owner(tmp_path):
    run = RunDirectory(tmp_path / "run")
    with pytest.raises(RunError, match="refused"), run.locked():
        raise RunError("refused")
    assert not list(run.path.glob("*.owner")) and not list(run.path.glob(".*.owner"))


def test_a_folder_of_another_command_is_refused_in_one_line(tmp_path):
    run = RunDirectory(tmp_path / "scan")
    run.start({"version": "1", "scan_settings": {"size": 64}})
    with pytest.raises(RunError, match="another command: it records no config") as caught:
        run.start({"version": "1", "config": {"debias": {"lr": 0.1}}})
    assert "choose another --out" in str(caught.value) and "debias" not in str(caught.value)


def test_a_record_that_lost_a_part_tells_how_to_go_on(tmp_path):
    """A damaged record looks like another command's: what it says to delete lets the run go on."""
    run = RunDirectory(tmp_path / "run")
    whole = {"version": "1", "config": {"debias": {"lr": 0.1}}}
    run.start(whole)
    write(run, "mine", "kept")
    (run.path / "run.json").write_text('{"schema": 1}')
    with pytest.raises(RunError) as caught:
        run.start(whole)
    assert f"delete {run.path / 'run.json'}: stages are kept" in caught.value.remedy
    (run.path / "run.json").unlink()
    run.start(whole)
    assert run.has("mine") and run.description["config"] == whole["config"]


def test_a_file_that_a_person_names_is_none_of_the_runs_own(tmp_path):
    run = RunDirectory(tmp_path / "run")
    (tmp_path / "run" / "scan").mkdir(parents=True)
    for name in ("run.json", "scan/scores.csv", "../run/report.html", "new/labels.csv"):
        with pytest.raises(RunError, match="files of its own"):
            run.require_not_own(tmp_path / "run" / name)
    for file in (tmp_path / "run" / "labels.csv", tmp_path / "x.csv", tmp_path / "running" / "y"):
        run.require_not_own(file)


@pytest.mark.parametrize("name", [".lock", ".lock.owner"])
def test_a_folder_in_the_place_of_a_lock_is_named_and_its_advice_works(tmp_path, name):
    run = RunDirectory(tmp_path / "run")
    (run.path / name / "inside").mkdir(parents=True)
    with pytest.raises(RunError, match=r"is a folder") as caught, run.locked():
        pass
    assert caught.value.remedy == f"delete {run.path / name}"
    shutil.rmtree(run.path / name)
    with run.locked():
        pass
