from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from d2cp.cli.report import report
from d2cp.data import load_table
from d2cp.errors import RunError
from d2cp.report.words import megabytes
from report_artifacts import write_run


@pytest.fixture
def app() -> typer.Typer:
    made = typer.Typer()
    made.command()(report)
    return made


def test_prints_the_file_and_its_size(app: typer.Typer, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", load_table("cmnist", limit=16), audit=True)
    out = tmp_path / "mail me.html"
    result = CliRunner().invoke(app, [str(run.path), "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert result.output == f"{out}  ({megabytes(out.stat().st_size)})\n"
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_folder_that_is_no_run_is_named(app: typer.Typer, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, [str(tmp_path)])
    assert isinstance(result.exception, RunError) and str(tmp_path) in str(result.exception)
