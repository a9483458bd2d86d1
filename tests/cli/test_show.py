"""`d2cp show`: what it prints is what the run wrote."""

import json
from pathlib import Path

import pytest

from d2cp.cli import main
from d2cp.core.files import read_json
from d2cp.data import load_table
from d2cp.report.summary import summarise
from report_artifacts import write_run


@pytest.fixture
def run(tmp_path: Path):
    return write_run(tmp_path / "run", load_table("cmnist", limit=60))


def show(run, *options: str) -> int:
    try:
        main(["show", str(run.path), *options])
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def test_tables_use_names(run, capsys):
    assert show(run) == 0
    said = capsys.readouterr().out
    assert "0-4, red" in said and "(true groups)" in said
    assert "0,0" not in said


@pytest.mark.parametrize("stage, file", [("evaluate", "results.json"), ("data", "summary.json")])
def test_an_edited_figure_is_not_printed(run, capsys, stage, file):
    path = run.path / stage / file
    path.write_text(path.read_text().replace("0.", "1.", 1) + " ")
    assert show(run) == 5
    out, err = capsys.readouterr()
    assert f"{file} has changed since it was written" in err and not out


def test_json_is_the_summary(run, capsys):
    assert show(run, "--json") == 0
    assert json.loads(capsys.readouterr().out) == summarise(run)
    assert read_json(run.path / "evaluate" / "results.json") == summarise(run)["results"]
