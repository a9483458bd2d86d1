"""A comparison in parts: commands that run anywhere, in any order, and no cell twice."""

from __future__ import annotations

import json
import shlex
import threading

import pytest
import typer
from typer.testing import CliRunner

from d2cp.cli.compare import compare
from d2cp.compare.grid import Grid
from d2cp.core.files import write_json
from d2cp.data.place import Place
from d2cp.errors import ConfigError
from d2cp.methods.erm import Erm

SMALL = ["--train-limit", "300", "--budget", "300", "--set", "val_limit=60"]
SMALL += ["--set", "test_limit=60", "--tier", "features", "--selection", "val_true_groups"]
SMALL += ["--quiet", "--methods", "erm,group_dro", "--seeds", "2"]


def command(*words: str) -> str:
    app = typer.Typer()
    app.command()(compare)
    outcome = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert outcome.exit_code == 0, outcome.output
    return outcome.output


def test_printed_commands_run_in_any_order_and_the_last_collects(tmp_path, monkeypatch):
    out, whole = tmp_path / "a folder", tmp_path / "whole"
    said = command("cmnist", "--out", str(out), *SMALL, "--search", "1", "--per", "cell",
                   "--print-commands")  # fmt: skip
    assert not out.exists()
    lines = [shlex.split(line) for line in said.splitlines()]
    assert {line[:2][1] for line in lines} == {"compare"} and lines[0][0] == "d2cp"
    parts = [line[-1] for line in lines[:-1]]
    assert parts == [
        "search-erm",
        "search-group_dro",
        "erm-0",
        "group_dro-0",
        "erm-1",
        "group_dro-1",
    ]
    fitted: list[int] = []
    real = Erm.fit
    monkeypatch.setattr(Erm, "fit", lambda self, t, p: fitted.append(t.seed) or real(self, t, p))
    for line in [*reversed(lines[:-1]), lines[-1]]:
        command(*line[2:])
    assert sorted(fitted) == [0, 0, 0, 1], "two draws of the search, two cells, nothing twice"
    command("cmnist", "--out", str(whole), *SMALL, "--search", "1")
    first, second = (json.loads((f / "compare.json").read_text()) for f in (out, whole))
    assert [r["groups"] for r in first["results"]] == [r["groups"] for r in second["results"]]


def test_a_part_that_is_not_there(tmp_path):
    with pytest.raises(ConfigError, match="--only erm-7"):
        command("cmnist", "--out", str(tmp_path), *SMALL, "--only", "erm-7")


def test_a_cell_is_waited_for_and_not_done_again(tmp_path):
    grid = Grid(
        place=Place.of("cmnist"), out=tmp_path, config={}, names=("erm",), budget=1, tier="features"
    )
    cell = tmp_path / "search" / "erm-0.json"
    asked, order = threading.Event(), []

    def second() -> None:
        asked.set()
        with grid.unfinished(cell, "x") as mine:
            order.append(mine)

    with grid.unfinished(cell, "x") as mine:
        other = threading.Thread(target=second)
        other.start()
        asked.wait()
        order.append(mine)
        write_json(cell, {"identity": "x", "score": [0.5]})
    other.join()
    assert order == [True, False]
