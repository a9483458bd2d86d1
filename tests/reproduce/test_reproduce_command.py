"""`d2cp reproduce` on the smallest settings: what is done stays done, what is shared is shared."""

from __future__ import annotations

import csv
import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

import e2e_settings
from d2cp.cli.app import app
from d2cp.compare.paper_figures import paper
from d2cp.errors import BackboneError, ConfigError, RunError
from d2cp.reproduce import run_cell, shared, trained

TINY = e2e_settings.arguments(**{"debias.epoch_size": 80, "disentangle.guide.concepts": 1})


def reproduce(*words: str, tiny: bool = True) -> str:
    given = ["reproduce", *(TINY if tiny else ()), *words, "--quiet"]
    done = CliRunner().invoke(app, given, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture(scope="module")
def out(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("reproduce")
    reproduce("table2", "--out", str(folder), "--rows", "a,f", "--seeds", "1")
    return folder


@pytest.fixture
def ran(monkeypatch) -> list[str]:
    """Names of the cells that were trained."""
    names: list[str] = []
    real = trained.train_cell

    def noted(cell, *rest):
        names.append(cell.name)
        return real(cell, *rest)

    monkeypatch.setitem(run_cell.RUNNERS, "train", noted)
    return names


def test_files_of_a_table(out):
    folder = out / "here" / "table2-cmnist"
    names = {path.name for path in folder.iterdir()}
    assert {"table.json", "table.csv", "table.html", "cmnist-test.svg", "cmnist-test.png"} <= names
    whole = json.loads((folder / "table.json").read_text())
    assert whole["selection"] == ["val_pseudo_groups", "val_worst_class"]
    with (folder / "table.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["row"] for row in rows} == {"a", "f"}
    html = (folder / "table.html").read_text()
    assert paper()["source"] in html and "(f) all" in html


def test_a_finished_table_redoes_nothing(out, monkeypatch):
    def never(*_, **__):
        raise AssertionError("a finished table was opened again")

    monkeypatch.setattr(run_cell, "Workshop", never)
    monkeypatch.setattr(shared, "open_run", never)
    stray = out / "here" / "table2-cmnist" / ".table.json.1.tmp"
    stray.write_text("a killed writer")
    text = reproduce("table2", "--out", str(out), "--rows", "a,f", "--seeds", "1")
    assert "(a) plain training" in text and "9.4 ± 14.5" in text
    assert not stray.exists()


def test_a_finished_table_needs_neither_torch_nor_scipy(out):
    words = ["reproduce", "table2", "--out", str(out), "--rows", "a,f", "--seeds", "1", *TINY]
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['torch', 'scipy', 'transformers']));"
        "from d2cp.cli.app import app; app(sys.argv[1:])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "(a) plain training" in done.stdout


def test_one_row_more_runs_that_row_and_tables_share_cells(out, ran):
    reproduce("table2", "--out", str(out), "--rows", "a,e,f", "--seeds", "1")
    assert ran == ["cmnist/e/0"]
    reproduce("table3", "--out", str(out), "--rows", "e,true", "--seeds", "1")
    assert ran == ["cmnist/e/0", "cmnist/true/0"]  # the mined column is row (e)


def test_cells_of_other_settings_are_told_before_anything_runs(out, tmp_path):
    """A setting was changed, or came with a newer version: which one, and what to do."""
    copy = tmp_path / "out"
    shutil.copytree(out, copy)
    words = ["table2", "--out", str(copy), "--rows", "a,f", "--seeds", "1", "--dry-run"]
    assert "run otherwise" not in reproduce(*words)
    said = reproduce(*words, "--set", "debias.lr=0.07")
    place = copy / "here/cmnist"
    assert f"{place}: 2 finished cells were run otherwise and are not used (rows a, f;" in said
    assert "debias.lr was 0.1, is now 0.07" in said
    assert "to use them: --set debias.lr=0.1; to keep the two apart: another --out" in said
    for cell in (place / "cells").glob("*/cell.json"):
        whole = json.loads(cell.read_text())
        del whole["config"]["debias"]["eta"]
        cell.write_text(json.dumps(whole))
        cell.parent.rename(cell.parent.with_name("of-" + cell.parent.name[:8]))
    said = reproduce(*words)
    assert "debias.eta did not exist, is now " in said and "they are run again" in said


def test_a_killed_cell_leaves_nothing_and_the_same_command_goes_on(out, monkeypatch, ran):
    words = ["alpha", "--out", str(out), "--rows", "1.5", "--seeds", "1"]
    before = set((out / "here/cmnist/cells").glob("[!.]*"))
    with monkeypatch.context() as patch:
        patch.setattr(trained, "scored", _killed)
        with pytest.raises(RuntimeError, match="killed"):
            reproduce(*words)
    assert set((out / "here/cmnist/cells").glob("[!.]*")) == before
    reproduce(*words)
    assert ran == ["cmnist/1.5/0", "cmnist/1.5/0"]
    assert len(set((out / "here/cmnist/cells").glob("[!.]*")) - before) == 1


def _killed(*_, **__):
    raise RuntimeError("killed")


def test_recall_concepts_and_saliency_train_what_is_missing_and_no_more(out, ran):
    reproduce("recall", "--out", str(out), "--seeds", "1")
    whole = json.loads((out / "here/recall-cmnist/table.json").read_text())
    assert {f["row"] for f in whole["figures"] if f["split"] == "train"} == {
        "0,0",
        "0,1",
        "1,0",
        "1,1",
    }
    reproduce("concepts", "--out", str(out), "--seeds", "1")
    assert (out / "here/concepts-cmnist/cmnist-concepts-0-swap.png").is_file()
    assert not ran
    reproduce("gradcam", "--out", str(out), "--rows", "erm,d2cp", "--seeds", "1")
    assert not ran  # the models of rows (a) and (f)
    whole = json.loads((out / "here/gradcam-cmnist/table.json").read_text())
    figures = {(f["row"], f["metric"]): f["mean"] for f in whole["figures"]}
    assert 0 < figures["erm", "area"] == figures["d2cp", "area"] < 0.5
    assert all(0 <= figures[row, "inside"] <= 1 for row in ("erm", "d2cp"))
    with Image.open(out / "here/gradcam-cmnist/cmnist-0-maps.png") as figure:
        assert figure.height > 3 * 112  # the images, ERM, D2CP


@pytest.mark.parametrize("how", ["a figure", "a place", "half a model"])
def test_a_damaged_cell_is_told_and_its_advice_works(out, tmp_path, ran, how):
    """A figure changed by hand, a picture that lies elsewhere, a file cut short."""
    copy = tmp_path / "out"
    shutil.copytree(out, copy)
    words = ["table2", "--out", str(copy), "--rows", "a", "--seeds", "1"]
    table = copy / "here/table2-cmnist/table.csv"
    reproduce(*words)
    before = table.read_text()
    done = json.loads((copy / "here/table2-cmnist/table.json").read_text())["cells"]
    folder = copy / "here/cmnist/cells" / done["cmnist/a/0"]
    whole = json.loads((folder / "cell.json").read_text())
    if how == "half a model":
        (folder / "model.safetensors").write_bytes(b"half")
    elif how == "a place":
        whole["pictures"] = [{"file": "../../secret", "title": ""}]
    else:
        whole["lines"][0]["figures"]["worst_group"] = 0.999
    (folder / "cell.json").write_text(json.dumps(whole))
    with pytest.raises(RunError) as told:
        reproduce(*words)
    assert f"delete {folder} and run again" in told.value.remedy
    shutil.rmtree(folder)
    reproduce(*words)
    assert ran == ["cmnist/a/0"] and table.read_text() == before


def test_a_seed_that_is_added_later_runs_alone(out, monkeypatch):
    reproduce("recall", "--out", str(out), "--seeds", "1")
    opened: list[int] = []
    real = shared.discover

    def noted(context):
        opened.append(context.config.seed)
        return real(context)

    monkeypatch.setattr(shared, "discover", noted)
    reproduce("recall", "--out", str(out), "--seeds", "2")
    assert opened == [1]
    whole = json.loads((out / "here/recall-cmnist/table.json").read_text())
    assert {seed for f in whole["figures"] for seed in f["by_seed"]} == {"0", "1"}


def test_one_cell_by_its_name(out, ran):
    words = ["prompt-length", "--out", str(out), "--seeds", "1"]
    reproduce(*words, "--rows", "1,5", "--only", "cmnist/1/0")
    assert ran == ["cmnist/1/0"]
    assert not (out / "here/prompt-length-cmnist").exists()
    with pytest.raises(ConfigError, match="no such cell"):
        reproduce(*words, "--only", "cmnist/7/0")


def test_cells_as_commands_that_run_anywhere(out, ran):
    words = ["prompt-length", "--out", str(out), "--seeds", "1", "--rows", "1,5"]
    said = reproduce(*words, "--print-commands").splitlines()
    assert [shlex.split(line)[-2:] for line in said[:-1]] == [
        ["--only", "cmnist/1/0"],
        ["--only", "cmnist/5/0"],
    ]
    assert "--only" not in said[-1]
    for line in said:
        done = CliRunner().invoke(app, shlex.split(line)[1:], catch_exceptions=False)
        assert done.exit_code == 0, done.output
    assert ran == ["cmnist/5/0"] and (out / "here/prompt-length-cmnist/table.csv").is_file()
    reproduce(*words, "--jobs", "2")  # all jobs are done: nothing is started
    assert ran == ["cmnist/5/0"]
    with pytest.raises(ConfigError, match="--executor 'cloud'"):
        reproduce(*words, "--executor", "cloud")


def test_a_method_of_table_1_shares_the_seeds_run(out, ran, monkeypatch):
    words = ["table1", "--out", str(out), "--rows", "erm", "--seeds", "1"]
    before = {path.name for path in (out / "here/cmnist/seeds").iterdir() if path.is_dir()}
    text = reproduce(*words)
    assert "erm" in text and "9.4 ± 14.5" in text
    runs = {path.name for path in (out / "here/cmnist/seeds").iterdir() if path.is_dir()}
    assert runs == before and "0" in runs
    monkeypatch.setattr(run_cell, "Workshop", _killed)
    assert "erm" in reproduce(*words)


def test_other_settings_of_what_tables_share_want_another_folder(out):
    with pytest.raises(RunError, match=r"disentangle\.steps was 6, now 7") as caught:
        reproduce("recall", "--out", str(out), "--seeds", "1", "--set", "disentangle.steps=7")
    assert "--force" not in str(caught.value) and "another --out" in caught.value.remedy


def test_a_backbone_that_is_not_here_is_told_before_stage_1(tmp_path, monkeypatch):
    monkeypatch.setattr(shared, "discover", _killed)
    with pytest.raises(BackboneError, match="there is no backbone folder"):
        reproduce("table2", "--out", str(tmp_path), "--backbone", "./nowhere", "--seeds", "1")


def test_folders_that_cannot_be_used_are_refused_before_anything_runs(tmp_path, ran):
    (tmp_path / "file").write_text("")
    (tmp_path / "run").mkdir()
    (tmp_path / "run/run.json").write_text("{}")
    with pytest.raises(RunError, match="could not write"):
        reproduce("table2", "--out", str(tmp_path / "file"), "--seeds", "1")
    with pytest.raises(RunError, match="is the folder of a run or a comparison"):
        reproduce("table2", "--out", str(tmp_path / "run"), "--seeds", "1")
    assert not ran


def test_scales_that_do_not_fit(tmp_path):
    with pytest.raises(ConfigError, match="--scale 'big'"):
        reproduce("table2", "--out", str(tmp_path), "--scale", "big", tiny=False)
    with pytest.raises(ConfigError, match="--scale paper on 'digits-unbiased'"):
        reproduce(
            "table2", "digits-unbiased", "--out", str(tmp_path), "--scale", "paper", tiny=False
        )
