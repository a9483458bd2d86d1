"""A stage is declared in one place; what reads the declaration follows it."""

import dataclasses
import json

import pytest

from d2cp.config import load_config
from d2cp.data import load_table
from d2cp.pipeline import stages
from d2cp.report import payload, summary
from d2cp.report.build import write_report
from report_artifacts import write_run


def test_a_stage_reads_only_stages_before_it() -> None:
    names = [stage.name for stage in stages.STAGES]
    assert len(set(names)) == len(names)
    for place, stage in enumerate(stages.STAGES):
        assert set(stage.after) <= set(names[:place])
        json.dumps(stage.settings(load_config("demo")))  # an identity can be made of it


def test_a_new_stage_is_shown_and_reported_once_it_is_declared(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write_run(tmp_path / "run", load_table("cmnist", limit=40))
    with run.writing("weather", "fixture") as folder:
        (folder / "figures.json").write_text('{"clouds": 17}')
    new = stages.Stage(
        name="weather", writes=("figures.json",), summary="figures.json", report="The weather"
    )
    for module in (stages, summary, payload):
        monkeypatch.setattr(module, "STAGES", (*stages.STAGES, new))
    shown = summary.summarise(run)
    assert shown["stages"]["weather"] == {"clouds": 17}
    assert "weather" in shown["seconds"]
    page = write_report(run).read_text()
    assert "The weather" in page and "clouds" in page


def test_a_setting_of_another_stage_does_not_redo_this_one() -> None:
    config = load_config("demo")
    other = dataclasses.replace(config, debias=dataclasses.replace(config.debias, eta=0.5))
    assert stages.stage("mine").settings(other) == stages.stage("mine").settings(config)
    assert stages.stage("debias").settings(other) != stages.stage("debias").settings(config)
