"""`d2cp compare` and `d2cp methods`, through the command line, on frozen features."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from d2cp.cli.compare import compare
from d2cp.cli.methods import methods as list_methods
from d2cp.compare import run_comparison, seed_run
from d2cp.compare.contract import Spec
from d2cp.compare.registry import BUILT_IN
from d2cp.compare.task import Pseudo
from d2cp.core.run_directory import RunDirectory
from d2cp.data.place import Place
from d2cp.errors import ConfigError, D2CPError, RunError, TrainingError
from d2cp.methods.erm import Erm
from d2cp.methods.group_dro import GroupDro
from d2cp.report.build import write_report


def command(function, *arguments: str) -> str:
    app = typer.Typer()
    app.command()(function)
    outcome = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert outcome.exit_code == 0, outcome.output
    return outcome.output


def arguments(out: Path, *more: str) -> list[str]:
    small = ["--train-limit", "300", "--budget", "600"]
    small += ["--set", "val_limit=120", "--set", "test_limit=120"]
    rule = ["--selection", "val_worst_class", "--tier", "features", "--quiet"]
    return ["cmnist", "--out", str(out), *small, *rule, *more]


def test_runs_once_and_goes_on_where_it_was_killed(tmp_path, monkeypatch):
    out = tmp_path / "run"
    names = ["--methods", "erm,group_dro,c_adapter", "--seeds", "2"]
    with monkeypatch.context() as patch:
        patch.setattr(GroupDro, "fit", _killed)
        with pytest.raises(RuntimeError, match="killed"):
            command(compare, *arguments(out, *names))
    assert sorted(p.name for p in (out / "cells").iterdir()) == ["erm-0.json"]
    with monkeypatch.context() as patch:
        fitted: list[int] = []
        real = Erm.fit
        patch.setattr(Erm, "fit", lambda self, t, p: fitted.append(t.seed) or real(self, t, p))
        text = command(compare, *arguments(out, *names))
    assert fitted == [1]  # seed 0 was finished before the kill
    assert "group_dro" in text and "train-weighted" in text
    whole = json.loads((out / "compare.json").read_text())
    assert whole["schema"] == 1 and whole["data"] == "cmnist"
    assert {(r["method"], r["seed"]) for r in whole["results"]} == {
        (m, s) for m in ("erm", "group_dro", "c_adapter") for s in (0, 1)
    }
    seen = {r["method"]: r["group_labels"] for r in whole["results"]}
    assert seen == {"erm": [], "group_dro": ["train"], "c_adapter": []}
    for r in whole["results"]:
        assert 0 < r["passes"] <= 600 and r["trainable"] > 0 and r["seconds"] >= 0
    rows = list(csv.DictReader((out / "compare.csv").open()))
    assert len(rows) == len(whole["results"])
    assert not list((out / "checkpoints").glob("*/*"))
    before = {p: p.stat().st_mtime_ns for p in (out / "cells").iterdir()}
    assert json.loads(command(compare, *arguments(out, *names, "--json"))) == whole
    assert before == {p: p.stat().st_mtime_ns for p in (out / "cells").iterdir()}
    with pytest.raises(RunError, match="another compare"):
        command(compare, *arguments(out, *names, "--budget", "700"))


def _killed(*_: object) -> None:
    raise RuntimeError("killed")


def test_seeds_in_processes_of_their_own_give_the_same_figures(tmp_path):
    names = ["--methods", "erm", "--seeds", "2"]
    figures = []
    for jobs in ("1", "2"):
        out = tmp_path / jobs
        command(compare, *arguments(out, *names, "--jobs", jobs))
        whole = json.loads((out / "compare.json").read_text())
        figures.append([(r["seed"], r["split"], r["groups"]) for r in whole["results"]])
    assert figures[0] == figures[1]


def test_search_takes_what_validation_likes_best(tmp_path):
    out = tmp_path / "run"
    names = ["--methods", "group_dro", "--seeds", "1", "--selection", "val_true_groups"]
    command(compare, *arguments(out, *names, "--search", "2"))
    trials = [json.loads(p.read_text()) for p in sorted((out / "search").iterdir())]
    assert len(trials) == 3 and len({json.dumps(t["params"]) for t in trials}) > 1
    best = max(trials, key=lambda t: t["score"])
    cell = json.loads((out / "cells" / "group_dro-0.json").read_text())
    assert max(t["score"] for t in trials if t["params"] == cell["params"]) == best["score"]


def test_force_goes_on_with_other_settings(tmp_path):
    out, names = tmp_path / "run", ["--methods", "erm", "--seeds", "1"]
    command(compare, *arguments(out, *names))
    other = [*names, "--selection", "val_true_groups"]
    with pytest.raises(RunError, match="another config"):
        command(compare, *arguments(out, *other))
    command(compare, *arguments(out, *other, "--force"))
    whole = json.loads((out / "compare.json").read_text())
    assert {r["selection"] for r in whole["results"]} == {"val_true_groups"}


def test_cells_of_other_settings_are_told_before_they_run_again(tmp_path, monkeypatch):
    out = tmp_path / "run"
    words = [
        word for word in arguments(out, "--methods", "jtt", "--seeds", "1") if word != "--quiet"
    ]
    command(compare, *words)
    assert "run otherwise" not in command(compare, *words)  # finished: nothing is told
    forced = command(compare, *words, "--set", "debias.lr=0.02", "--force")
    assert "1 finished cells were run otherwise and are run again (jtt-0):" in forced
    assert "debias.lr was 0.1, is now 0.02" in forced and "another --out" in forced
    real = Spec.values
    newer = lambda spec, given=None: {**real(spec, given), "factor": 7}  # noqa: E731
    monkeypatch.setattr(Spec, "values", newer)
    said = command(compare, *words, "--set", "debias.lr=0.02")
    assert "factor was " in said and "is now 7" in said


def test_search_draws_rates_for_a_method_without_parameters(tmp_path, monkeypatch):
    out = tmp_path / "run"
    used: list[tuple[float, float]] = []
    real = Erm.fit

    def fit(self, task, params):
        used.append((task.config.lr, task.config.weight_decay))
        return real(self, task, params)

    monkeypatch.setattr(Erm, "fit", fit)
    names = ["--methods", "erm", "--seeds", "1", "--selection", "val_true_groups"]
    command(compare, *arguments(out, *names, "--search", "3"))
    trials = [json.loads(p.read_text()) for p in sorted((out / "search").iterdir())]
    assert {tuple(t["params"]) for t in trials} == {("lr", "weight_decay")}
    assert trials[0]["params"]["lr"] == "preset"
    assert all(0.003 <= t["params"]["lr"] <= 0.3 for t in trials[1:])
    drawn = [(t["params"]["lr"], t["params"]["weight_decay"]) for t in trials[1:]]
    assert used[:4] == [(0.1, 0.001), *drawn]


def test_wrong_values_are_refused_in_plain_words(tmp_path):
    with pytest.raises(ConfigError, match="--selection"):
        command(compare, *arguments(tmp_path / "a", "--selection", "test"))
    with pytest.raises(ConfigError, match="works on the pixels themselves"):
        command(compare, *arguments(tmp_path / "b", "--methods", "masktune"))
    with pytest.raises(ConfigError, match="val_worst_class"):
        command(compare, *arguments(tmp_path / "c", "--methods", "erm", "--search", "2"))


def without_attributes(monkeypatch) -> None:
    real = Place.table
    monkeypatch.setattr(Place, "table", lambda self: real(self).without_attribute())


def test_methods_that_cannot_run_are_left_out_and_told_before_anything_runs(tmp_path, monkeypatch):
    without_attributes(monkeypatch)
    out = tmp_path / "run"
    monkeypatch.setattr(run_comparison, "run_part", _killed)
    with pytest.raises(RuntimeError, match="killed"):
        command(compare, *arguments(out, "--methods", "erm,jtt"))
    told: list[str] = []
    monkeypatch.setattr(run_comparison.Console, "print", lambda self, text, **_: told.append(text))
    with pytest.raises(RuntimeError, match="killed"):
        command(compare, *arguments(tmp_path / "all"))
    assert sorted(line.split()[0] for line in told) == sorted(
        ["group_dro", "pde", "cpt", "elrep", "crm", "dfr", "masktune", "sas", "ppa"]
    )
    assert "crm is left out: it needs group labels" in " ".join(told)
    assert "ppa is left out: it needs a text encoder" in " ".join(told)
    with pytest.raises(ConfigError, match="CRM cannot run: it needs group labels"):
        command(compare, *arguments(tmp_path / "named", "--methods", "erm,crm"))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--set", "debias.image_size=25", "--set", "debias.resize=28"), "do not divide"),
        (("--selection", "val_true_groups"), "no attribute column"),
        (("--set", "backbone=./nowhere"), "no backbone folder"),
    ],
)
def test_faults_are_told_before_the_first_stage(tmp_path, monkeypatch, more, words):
    without_attributes(monkeypatch)
    monkeypatch.setattr(seed_run, "open_run", _killed)
    with pytest.raises(D2CPError, match=words):
        command(compare, *arguments(tmp_path / "run", "--methods", "erm", *more))


def test_mined_groups_stand_for_the_true_ones_and_are_marked(tmp_path, monkeypatch):
    monkeypatch.setattr(seed_run, "mine", made_up_groups)
    without_attributes(monkeypatch)
    out = tmp_path / "run"
    names = ["--methods", "erm,crm,dfr", "--seeds", "1", "--groups", "mined"]
    text = command(compare, *arguments(out, *names))
    whole = json.loads((out / "compare.json").read_text())
    assert [line["method"] for line in whole["summary"]["test"]] == [
        "erm",
        "crm@mined",
        "dfr@mined",
    ]
    assert {r["method"]: (r["group_labels"], r["mined_groups"]) for r in whole["results"]} == {
        "erm": ([], False),
        "crm@mined": ([], True),
        "dfr@mined": ([], True),
    }
    assert "crm@mined" in text and "mined" in (out / "compare.csv").read_text()
    assert "crm@mined" in write_report(RunDirectory(out)).read_text()


def test_both_kinds_of_groups_side_by_side(tmp_path, monkeypatch):
    monkeypatch.setattr(seed_run, "mine", made_up_groups)
    out = tmp_path / "run"
    names = ["--methods", "dfr", "--seeds", "1", "--groups", "both"]
    command(compare, *arguments(out, *names))
    whole = json.loads((out / "compare.json").read_text())
    assert {r["method"]: r["group_labels"] for r in whole["results"]} == {
        "dfr": ["val, fitted"],
        "dfr@mined": [],
    }
    with pytest.raises(ConfigError, match="ERM asks for no group labels"):
        command(compare, *arguments(tmp_path / "b", "--methods", "erm@mined"))


def made_up_groups(context) -> Pseudo:
    a = (np.arange(len(context.table)) % 3 == 0).astype(np.int64)
    return Pseudo(a, 2, a.astype(float), a, a)


def test_equal_epochs(tmp_path):
    out = tmp_path / "run"
    names = ["--methods", "erm,jtt", "--seeds", "1", "--epochs", "2"]
    text = command(compare, *arguments(out, *names))
    whole = json.loads((out / "compare.json").read_text())
    passes = {r["method"]: r["passes"] for r in whole["results"]}
    assert passes["erm"] == 600  # 300 images twice
    assert passes["jtt"] == 600 + 100  # after a fifth of it for the first training, whole batches
    assert whole["epochs"] == 2 and "budget" not in whole and "2 epochs a training" in text


def test_a_draw_that_diverges_has_lost_and_stops_nothing(tmp_path, monkeypatch):
    out = tmp_path / "run"
    real = Erm.fit

    def fit(self, task, params):
        if task.config.lr != 0.1:
            raise TrainingError("the loss is nan at step 3")
        return real(self, task, params)

    monkeypatch.setattr(Erm, "fit", fit)
    names = ["--methods", "erm", "--seeds", "1", "--selection", "val_true_groups"]
    command(compare, *arguments(out, *names, "--search", "2"))
    trials = [json.loads(p.read_text()) for p in sorted((out / "search").iterdir())]
    assert [t["score"] == [0.0, 0.0] for t in trials] == [False, True, True]
    assert "nan" in trials[1]["notes"][0]


def test_list_names_every_method_and_what_it_sees():
    listed = {m["name"]: m for m in json.loads(command(list_methods, "--json"))}
    assert set(BUILT_IN) <= set(listed)
    assert listed["cpt"]["sees_train_groups"] and not listed["d2cp"]["sees_train_groups"]
    assert listed["dfr"]["fits_on_val_groups"] and not listed["dfr"]["sees_train_groups"]
    text = command(list_methods)
    assert "group_dro" in text and "@mined" in text
