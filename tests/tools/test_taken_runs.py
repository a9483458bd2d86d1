"""Finished runs as a result file: one experiment, seed by seed, with how it was made."""

from __future__ import annotations

from pathlib import Path

import pytest

from d2cp.config import load_config
from d2cp.core.files import write_json
from tools.results.files import ResultFileError, figure, read
from tools.results.runs import take_runs


def run(folder: Path, seed: int, worst: float, *more: str, commit: str = "abc1234") -> Path:
    """What `d2cp run` leaves, as far as a page shows it."""
    config = load_config("demo", assignments=[f"seed={seed}", "test_limit=0", *more])
    data = {"name": "photos", "path": "/some/where/photos"}
    write_json(
        folder / "run.json",
        {"schema": 1, "version": "0", "data": data, "config": config.to_dict()},
    )
    write_json(folder / "environment.json", {"machine": "two cores", "commit": commit})
    shares = {"worst_group": worst, "mean": 0.9, "train_weighted_mean": 0.95}
    line = {"method": "d2cp", "seed": seed, "split": "test", "selection": "val_pseudo_groups"}
    write_json(folder / "evaluate/results.json", [{**line, **shares}])
    write_json(folder / "evaluate/choice.json", {"model": "d2cp"})
    mined = {"verdict": "found", "balanced_accuracy": {"val": 0.98765}}
    write_json(folder / "mine/summary.json", mined)
    stage = {"stage": "mine", "inputs": "x", "seconds": 21.6, "files": {}}
    write_json(folder / "mine/manifest.json", stage)
    return folder


def test_figures_over_seeds_the_command_and_the_commit(tmp_path):
    runs = [run(tmp_path / str(s), s, worst) for s, worst in enumerate((0.9, 0.94))]
    made = take_runs(runs, tmp_path, "photos", {"commit": "unused"})
    whole = read(made)
    assert whole["command"] == (
        "d2cp run PHOTOS --out RUN --preset demo --set test_limit=0 --seed 0"
    )
    assert (whole["commit"], whole["seeds"], whole["machine"]) == ("abc1234", [0, 1], "two cores")
    assert figure(tmp_path, ["photos", "test", "d2cp", "worst_group"]) == "92.0 ± 2.8"
    assert figure(tmp_path, ["photos", "seconds", "mine"]) == "22, 22"
    assert read(made)["tables"]["seconds"]["rows"] == [["mine", "22, 22"]]
    assert figure(tmp_path, ["photos", "val", "pseudo"]) == "0.988, 0.988"
    assert figure(tmp_path, ["photos", "verdicts"]) == "found, found"
    assert whole["tables"][""]["rows"][0][-1] == "90.0, 94.0"
    assert "/some/where" not in made.read_text()


def test_runs_of_other_settings_or_without_a_commit_are_refused(tmp_path):
    one, other = run(tmp_path / "0", 0, 0.9), run(tmp_path / "1", 1, 0.9, "debias.lr=0.02")
    with pytest.raises(ResultFileError, match="differ in more than their seed"):
        take_runs([one, other], tmp_path, "photos", {"commit": ""})
    old = run(tmp_path / "2", 2, 0.9, commit="")
    with pytest.raises(ResultFileError, match="commit"):
        take_runs([old], tmp_path, "photos", {"commit": ""})
    assert read(take_runs([old], tmp_path, "photos", {"commit": "def5678"}))["commit"] == "def5678"


def test_an_experiment_that_is_not_finished_is_told(tmp_path):
    half = run(tmp_path / "0", 0, 0.9)
    (half / "evaluate/results.json").unlink()
    with pytest.raises(ResultFileError, match="not finished"):
        take_runs([half], tmp_path, "photos", {"commit": ""})
