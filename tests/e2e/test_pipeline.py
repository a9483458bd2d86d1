"""The whole method through the command line, small but real."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.numpy import load_file

from d2cp.cli import main
from d2cp.core.files import read_json, sha256
from d2cp.data import load_table
from d2cp.debias.labels import Labels
from d2cp.disentangle.colour_map import ColourMap
from d2cp.pipeline import stage_two
from d2cp.pipeline.recolouring import Recolouring
from e2e_settings import arguments
from two_ranks import LAUNCHERS, two_ranks


def d2cp(*words: object) -> int:
    """Run a command in this process; returns its exit code."""
    try:
        main([str(w) for w in words])
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "run"
    assert d2cp("run", "cmnist", "--out", path, "--quiet", *arguments()) == 0
    return path


def test_show_json_has_the_documented_keys(run, capsys):
    assert d2cp("show", run, "--json") == 0
    whole = json.loads(capsys.readouterr().out)
    assert whole["schema"] == 1
    names = {"name", "class_names", "attribute_names", "counts", "warnings", "notes"}
    assert set(whole["data"]) == names
    assert sum(whole["data"]["counts"]["train"].values()) == 240
    found = whole["discover"]
    assert found["verdict"] in ("found", "weak", "none")
    assert set(found["recall"]) == {"train", "val", "test", "test_balanced"}
    assert found["seconds"] > 0 and all(isinstance(k, int) for k in found["concepts"])
    kinds = {(r["method"], r["split"]) for r in whole["results"]}
    assert kinds == {(m, s) for m in ("erm", "d2cp") for s in ("test", "test_balanced")}
    for result in whole["results"]:
        # The control's state is chosen without the mined groups, as plain training's would be.
        plain = result["method"] == "erm"
        assert result["selection"] == ("val_worst_class" if plain else "val_pseudo_groups")
        assert result["worst_group"] == min(g["accuracy"] for g in result["groups"].values())
    assert {"disentangle", "mine", "erm", "debias", "evaluate"} <= set(whole["seconds"])


def test_every_picture_is_a_picture(run):
    listed = read_json(run / "mine" / "summary.json")["pictures"]
    assert {p["kind"] for p in listed} >= {"swap", "traversal", "extremes", "attention"}
    for entry in listed:
        with Image.open(run / "mine" / entry["file"]) as image:
            image.load()
            assert image.width > 300 and entry["caption"]
            assert np.asarray(image).std() > 5


def test_a_second_run_keeps_every_stage(run, capsys):
    before = {p: sha256(p) for p in run.rglob("manifest.json")}
    assert d2cp("run", "cmnist", "--out", run, "--json", *arguments()) == 0
    out, said = capsys.readouterr()
    assert json.loads(out)["results"] == read_json(run / "evaluate" / "results.json")
    for stage in ("disentangle", "mine", "features", "environments", "erm", "debias", "evaluate"):
        assert f"{stage}: unchanged, kept" in said
    assert before == {p: sha256(p) for p in run.rglob("manifest.json")}


def test_recolouring_is_tried_by_stage_1_and_used_where_it_turns_the_value(run, tmp_path, capsys):
    other = tmp_path / "recoloured"
    shutil.copytree(run, other)
    words = [*arguments(), "--set", "debias.recolour=true", "--no-control", "--force"]
    assert d2cp("run", "cmnist", "--out", other, *words) == 0
    said = capsys.readouterr()
    said = said.out + said.err
    found = read_json(other / "mine" / "recolour.json")
    assert found["works"] == (min(found["turned"]) >= 0.9)
    assert len(found["maps"]) == len(found["turned"]) == 2
    assert ("debias: recoloured, " in said) == found["works"]
    assert ("debias: the finding is no colour alone" in said) != found["works"]
    assert not (run / "mine" / "recolour.json").exists()


def test_images_are_trained_on_in_either_colour_where_recolouring_works(
    run, tmp_path, capsys, monkeypatch
):
    swap = ColourMap(np.eye(3)[[1, 0, 2]], np.zeros(3), 1.0)
    known = Recolouring((swap, swap), (1.0, 0.95))
    monkeypatch.setattr(stage_two, "load_recolouring", lambda folder: known)
    trained: list[Labels] = []
    plainly = stage_two.train_d2cp

    def watched(backbone, store, labels, *rest, **named):
        pair = store[np.array([0, len(store) // 2])]
        assert (pair[0] == pair[1][..., [1, 0, 2]]).all()
        trained.append(labels)
        return plainly(backbone, store, labels, *rest, **named)

    monkeypatch.setattr(stage_two, "train_d2cp", watched)
    other = tmp_path / "recoloured"
    shutil.copytree(run, other)
    words = [*arguments(), "--set", "debias.recolour=true", "--no-control", "--force"]
    assert d2cp("run", "cmnist", "--out", other, *words) == 0
    assert "debias: recoloured, 100% and 95% of images" in capsys.readouterr().err
    assert len(trained) == 1 and len(trained[0].train) == 480


def test_recolouring_is_refused_where_it_would_do_nothing(tmp_path, capsys):
    for setting in ("debias.tier=features", "debias.use_pseudo=false"):
        words = [*arguments(), "--set", "debias.recolour=true", "--set", setting]
        assert d2cp("run", "cmnist", "--out", tmp_path / "none", *words) == 2
        assert "recolour is on" in capsys.readouterr().err
    words = ["--set", "debias.recolour=true", "--methods", "erm", *arguments()]
    assert d2cp("compare", "cmnist", "--out", tmp_path / "none", *words) == 2
    assert "debias.recolour = True in a comparison" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_other_settings_are_refused_and_nothing_is_lost(run, capsys):
    before = {p: sha256(p) for p in run.rglob("*") if p.is_file()}
    words = ["run", "cmnist", "--out", run, *arguments(**{"debias.epochs": 3})]
    assert d2cp(*words) == 5
    assert "config.debias.epochs was 1, now 3" in capsys.readouterr().err
    after = {p: sha256(p) for p in run.rglob("*") if p.is_file()}
    assert before == after


def test_evaluate_prints_groups_and_other_data(run, capsys):
    assert d2cp("evaluate", run, "--json") == 0
    assert len(json.loads(capsys.readouterr().out)) == 4
    assert d2cp("evaluate", run, "--data", "cmnist10") == 3
    assert "does not know" in capsys.readouterr().err


def test_export_and_predict(run, tmp_path, capsys):
    table = load_table("cmnist")
    rows = table.rows("test")[:3]
    files = []
    for row in rows:
        files.append(tmp_path / f"{row}.png")
        Image.fromarray(table.source.pixels(np.array([row]))[0]).save(files[-1])
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"<html>not an image</html>")
    assert (
        d2cp("export", run, "--to", tmp_path / "model", "--with-shortcut", "--model", "d2cp") == 0
    )
    capsys.readouterr()
    assert d2cp("predict", tmp_path / "model", *files, broken) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["file"] for line in lines] == [str(f) for f in [*files, broken]]
    assert "error" in lines[-1]
    with (run / "evaluate" / "predictions.csv").open() as file:
        stored = {r["id"]: r for r in csv.DictReader(file)}
    for row, line in zip(rows, lines, strict=False):
        assert sum(line["probabilities"].values()) == pytest.approx(1, abs=1e-4)
        if (known := stored.get(str(table.ids[row]))) is not None:
            assert line["label"] == table.class_names[int(known["d2cp"])]


def test_report_is_there_and_small(run):
    file = run / "report.html"
    assert file.is_file() and 10_000 < file.stat().st_size < 5_000_000


def test_killed_between_and_within_stages_and_resumed_gives_the_same_bits(run, tmp_path):
    """SIGKILL when a stage has just appeared, twice, then let it finish."""
    path = tmp_path / "killed"
    words = [sys.executable, "-m", "d2cp", "run", "cmnist", "--out", str(path), "--quiet"]
    words += arguments()
    # As many threads as here: sums in another order would differ in the last bit.
    environment = {**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())}
    for stage in ("disentangle", "erm"):
        process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL)
        while not (path / stage / "manifest.json").exists():
            assert process.poll() is None, f"ended before {stage} was there"
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
    subprocess.run(words, env=environment, check=True, stdout=subprocess.DEVNULL)
    for stage, file in (
        ("disentangle", "model.safetensors"),
        ("mine", "pseudo.csv"),
        ("environments", "bits.csv"),
        ("erm", "model.safetensors"),
        ("debias", "model.safetensors"),
        ("evaluate", "results.json"),
    ):
        assert sha256(path / stage / file) == sha256(run / stage / file), stage


@pytest.mark.slow
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_two_processes_finish_a_run_as_one_does(run, tmp_path, launcher):
    """From the same finding on: stage 1 in float32 parts by rounding alone (see test_processes)."""
    path = tmp_path / "two"
    shutil.copytree(run, path)
    for stage in ("features", "environments", "erm", "debias", "evaluate"):
        shutil.rmtree(path / stage)
    (path / "metrics.jsonl").unlink()
    words = ["run", "cmnist", "--out", path, "--device", "cpu", *arguments()]
    done = two_ranks(launcher, "-m", "d2cp", *words)
    assert read_json(path / "environment.json")["processes"] == 2
    assert done.stdout.count("Shortcut:") == 1, "the main process alone speaks"
    for stage, file in (("features", "features"), ("erm", "model"), ("debias", "model")):
        one, two = (load_file(p / stage / f"{file}.safetensors") for p in (run, path))
        for name, value in one.items():
            np.testing.assert_allclose(two[name], value, rtol=0, atol=1e-4, err_msg=stage)
    for stage, file in (("environments", "bits.csv"), ("mine", "pseudo.csv")):
        assert sha256(path / stage / file) == sha256(run / stage / file), stage
    one, two = (_losses(p) for p in (run, path))
    assert [line[:2] for line in one] == [line[:2] for line in two] and len(one) == 4
    np.testing.assert_allclose([v[2] for v in two], [v[2] for v in one], rtol=0, atol=1e-4)


def _losses(path):
    lines = map(json.loads, (path / "metrics.jsonl").read_text().splitlines())
    kept = [line for line in lines if line["stage"] in ("erm", "debias") and "loss" in line]
    return [(line["stage"], line["step"], line["loss"]) for line in kept]
