"""`evaluate` averages seeds of one experiment and nothing else."""

import pytest

from d2cp.core.files import read_json, write_json
from d2cp.core.run_directory import RunDirectory
from d2cp.errors import RunError
from d2cp.evaluate.pooling import require_one_experiment


def _run(path, seed, classes=("cat", "dog"), epochs=3):
    run = RunDirectory(path)
    path.mkdir()
    run.start({"config": {"seed": seed, "debias": {"epochs": epochs}}})
    with run.writing("data", "x") as folder:
        counts = {"train": {"0": 1, "1": 1}}
        found = {"name": "pets", "fingerprint": "f", "class_names": list(classes)}
        write_json(folder / "summary.json", {**found, "counts": counts})
    return run


def test_seeds_of_one_experiment_are_pooled(tmp_path):
    require_one_experiment([_run(tmp_path / str(s), s) for s in range(3)])


def test_digits_and_cats_are_not_pooled(tmp_path):
    runs = [_run(tmp_path / "a", 0), _run(tmp_path / "b", 1, classes=("0", "1"))]
    with pytest.raises(RunError, match=r"not seeds of one experiment: data\.class_names"):
        require_one_experiment(runs)


def test_other_settings_are_not_pooled(tmp_path):
    runs = [_run(tmp_path / "a", 0), _run(tmp_path / "b", 1, epochs=9)]
    with pytest.raises(RunError, match=r"config\.debias\.epochs was 3, now 9"):
        require_one_experiment(runs)


def test_a_run_given_twice_is_not_two_seeds(tmp_path):
    run = _run(tmp_path / "a", 4)
    with pytest.raises(RunError, match="both seed 4"):
        require_one_experiment([run, RunDirectory(tmp_path / "a")])


def test_one_run_is_not_compared_with_anything(tmp_path):
    require_one_experiment([RunDirectory(tmp_path)])


def test_the_command_refuses(tmp_path, capsys):
    from d2cp.cli import main

    for name in ("a", "b"):
        _run(tmp_path / name, 0)
    assert read_json(tmp_path / "a" / "run.json")["config"]["seed"] == 0
    with pytest.raises(SystemExit) as stop:
        main(["evaluate", str(tmp_path / "a"), str(tmp_path / "b")])
    assert stop.value.code == 5 and "both seed 0" in capsys.readouterr().err
