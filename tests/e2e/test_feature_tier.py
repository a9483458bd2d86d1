"""The whole method on frozen features: search, recommendation, export and prediction."""

import csv
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from d2cp.cli import main
from d2cp.core.files import read_json, write_json
from d2cp.data import load_table
from damage import refit
from e2e_settings import arguments
from kill import contents, differences

TIER = {"debias.tier": "features", "debias.feature_draws": 2, "debias.spurious_heads": 2}


def d2cp(*words: object) -> int:
    try:
        main([str(w) for w in words])
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("features") / "run"
    assert d2cp("run", "cmnist", "--out", path, "--quiet", *arguments(**TIER)) == 0
    return path


def test_both_models_were_searched_with_as_many_draws(run):
    method, control = (read_json(run / stage / "debias.json") for stage in ("debias", "erm"))
    assert len(method["draws"]) == len(control["draws"]) == 3
    searched = {"lr", "weight_decay", "eta"}
    assert set(method["draws"][0]["settings"]) == searched
    assert set(control["draws"][0]["settings"]) == {"lr", "weight_decay"}
    best = max(method["draws"], key=lambda draw: draw["score"])
    assert {name: method["config"][name] for name in searched} == best["settings"]
    assert method["fitted"]["best_step"] == method["config"]["max_steps"]


def test_the_run_says_which_classifier_it_recommends(run, capsys):
    assert d2cp("show", run, "--json") == 0
    choice = json.loads(capsys.readouterr().out)["choice"]
    assert choice["model"] in ("d2cp", "erm") and choice["sentences"]
    assert choice["gain"]["low"] <= choice["gain"]["high"]
    assert (choice["model"] == "d2cp") == (choice["gain"]["surely"] >= 0.9)
    page = (run / "report.html").read_text(encoding="utf-8")
    assert choice["sentences"][0] in page
    said = {"d2cp": "D2CP", "erm": "plain training, and why"}[choice["model"]]
    assert f'<a href="#effect">{said}</a>' in page


@pytest.mark.parametrize("model", ["d2cp", "erm"])
def test_what_is_exported_answers_as_the_run_did(run, tmp_path, capsys, model):
    table = load_table("cmnist")
    with (run / "evaluate" / "predictions.csv").open() as file:
        stored = {line["id"]: line for line in csv.DictReader(file)}
    rows = [row for row in table.rows("test") if str(table.ids[row]) in stored][:5]
    files = []
    for row in rows:
        files.append(tmp_path / f"{row}.png")
        Image.fromarray(table.source.pixels(np.array([row]))[0]).save(files[-1])
    assert d2cp("export", run, "--to", tmp_path / "model", "--model", model) == 0
    capsys.readouterr()
    assert d2cp("predict", tmp_path / "model", *files) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for row, line in zip(rows, lines, strict=True):
        known = stored[str(table.ids[row])]
        assert line["label"] == table.class_names[int(known[model])]
        assert max(line["probabilities"].values()) == pytest.approx(
            float(known[f"{model}_p"]), abs=1e-3
        )


def test_export_ships_what_is_recommended(run, tmp_path, capsys):
    """The record is changed by hand: which of the two wins so short a training is chance."""
    path = run / "evaluate" / "choice.json"
    before = read_json(path)
    try:
        for model, title in (("erm", "plain training"), ("d2cp", "D2CP")):
            write_json(path, {**before, "model": model})
            refit(run, path)
            assert d2cp("export", run, "--to", tmp_path / "model") == 0
            said = capsys.readouterr().out
            assert f"{tmp_path / 'model'}: {title}" in said
            assert ("--model d2cp" in said) == (model == "erm")
        assert d2cp("export", run, "--to", tmp_path / "model", "--model", "other") == 2
    finally:
        write_json(path, before)
        refit(run, path)


def test_the_advice_of_a_damaged_stage_helps_to_the_letter(run, tmp_path, capsys):
    """Each message says what to delete and to run again: that is done, until nothing is said."""
    path = tmp_path / "run"
    shutil.copytree(run, path)
    before = contents(path)
    for file in ("data/summary.json", "environments/bits.csv", "evaluate/results.json"):
        data = (path / file).read_bytes()
        (path / file).write_bytes(data[: len(data) // 2])
    (path / "run.json").write_text("{")
    followed = []
    while (code := d2cp("report", path)) != 0:
        said = capsys.readouterr().err
        advice = re.search(r"to do: +delete (\S+) and", said)
        if advice is None:
            assert code == 5 and "d2cp run DATA" in said
            break
        target = Path(advice[1])
        followed.append(target.name)
        shutil.rmtree(target) if target.is_dir() else target.unlink()
        if target.name == "run.json":  # "give the command that made the run again"
            break
    assert followed
    assert d2cp("run", "cmnist", "--out", path, "--quiet", *arguments(**TIER)) == 0
    assert d2cp("report", path) == 0
    assert differences(before, contents(path)) == []


def test_every_stage_heals_from_every_kind_of_damage(run, tmp_path, capsys):
    """One file of each stage changed, cut or gone: `report`, `show` and `export` refuse what they
    read of it, `run` says which it was or what to delete, and in the end nothing differs."""
    path, kinds = tmp_path / "run", ("changed", "cut", "gone", "manifest")
    shutil.copytree(run, path)
    before = contents(path)
    stages = sorted(p.parent for p in path.glob("*/manifest.json"))
    assert len(stages) >= 8
    harmed = {}
    for index, stage in enumerate(stages):
        files = sorted(p for p in stage.rglob("*") if p.is_file() and p.suffix != ".png")
        file = next(p for p in files if p.name != "manifest.json")
        kind = kinds[index % len(kinds)]
        if kind == "manifest":
            file, kind = stage / "manifest.json", "cut"
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.unlink() if kind == "gone" else file.write_bytes(
            data if kind == "changed" else data[: len(data) // 2]
        )
        harmed[stage.name] = file
    for words in (("report", path), ("show", path), ("export", path, "--to", tmp_path / "model")):
        assert d2cp(*words) == 5, words
        assert f"delete {path}/" in capsys.readouterr().err
    said = ""
    for _ in stages:
        code = d2cp("run", "cmnist", "--out", path, *arguments(**TIER))
        told = capsys.readouterr().err
        said += told
        if code == 0:
            break
        advice = re.search(r"to do: +delete (\S+) and run again", told)
        assert code == 5 and advice, told
        shutil.rmtree(advice[1])
    assert code == 0
    whole = said.replace("\n", "")
    assert [name for name, file in harmed.items() if str(file) not in whole] == []
    assert differences(before, contents(path)) == []


def test_a_control_that_is_wanted_later_brings_its_evidence(run, tmp_path):
    """Without a control first, then with it: the recommendation rests on what it would have."""
    path, words = tmp_path / "run", ("run", "cmnist", "--quiet", *arguments(**TIER))
    shutil.copytree(run, path)
    before = contents(path)
    for stage in ("erm", "debias", "evaluate"):
        shutil.rmtree(path / stage)
    assert d2cp(*words, "--no-control", "--out", path) == 0
    assert not (path / "debias" / "evidence.safetensors").exists()
    assert d2cp(*words, "--out", path) == 0
    assert (path / "debias" / "evidence.safetensors").exists()
    assert differences(before, contents(path)) == []
    assert d2cp(*words, "--no-control", "--out", path) == 0
    assert (path / "debias" / "evidence.safetensors").exists()
