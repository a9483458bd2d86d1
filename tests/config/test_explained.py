"""What settings mean, read from the dataclasses."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from typing import Literal

import pytest
from typer.testing import CliRunner

from d2cp.cli.app import app
from d2cp.config import load_config, preset_names
from d2cp.config.explained import explain
from d2cp.config.whole import Config


@dataclass(frozen=True, kw_only=True)
class Inner:
    rate: float = 0.5  # beside it
    names: tuple[str, ...] = ()
    """Under it,
    on two lines."""
    # Above the next: a heading, not a note.
    plain: int | None = None


@dataclass(frozen=True, kw_only=True)
class Outer:
    how: Literal["a", "b"] = "a"
    inner: Inner = field(default_factory=Inner)


def test_notes_beside_and_under_a_field_are_read_and_headings_are_not():
    found = {s.name: (s.kind, s.default, s.note) for s in explain(Outer)}
    assert found == {
        "how": ('"a" | "b"', "a", ""),
        "inner.rate": ("number", 0.5, "beside it"),
        "inner.names": ("list of text", (), "Under it, on two lines."),
        "inner.plain": ("whole number", None, ""),
    }


def test_every_setting_of_a_run_is_listed_once():
    names = [setting.name for setting in explain(Config)]
    assert len(names) == len(set(names)) > 60


@pytest.mark.parametrize("name", preset_names())
def test_an_explained_preset_is_toml_that_gives_the_same_configuration(name, tmp_path):
    shown = CliRunner().invoke(app, ["presets", name, "--explain"])
    assert shown.exit_code == 0 and "# " in shown.output
    tomllib.loads(shown.output)
    file = tmp_path / "mine.toml"
    file.write_text(shown.output, encoding="utf-8")
    assert load_config(name, file=file) == load_config(name)


def test_explain_needs_a_name():
    assert CliRunner().invoke(app, ["presets", "--explain"]).exit_code == 2


def test_every_setting_says_what_it_means():
    assert [s.name for s in explain(Config) if not s.note and s.name != "preset"] == []
