"""Every `d2cp` command in README and the documentation exists as shown; the quick ones run."""

from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

import documentation
from d2cp.cli.app import app
from d2cp.compare.registry import methods
from d2cp.config import load_config, preset_names
from documentation import Command

ALL = documentation.all_commands()
GROUP = typer.main.get_command(app)
QUICK = {"presets", "methods", "doctor"}
EMBEDDED = {"cmnist", "cmnist10", "digits-unbiased"}
OWN = {"smooth"}  # the method that the guide writes


def is_quick(command: Command) -> bool:
    name, *rest = command.words
    placeholder = any(word.isupper() for word in rest)
    if name in QUICK or "--help" in rest or name == "--version":
        return not placeholder
    return name == "check" and bool(rest) and rest[0] in EMBEDDED


def values(command: Command, option: str) -> list[str]:
    pairs = zip(command.words, command.words[1:], strict=False)
    return [value for word, value in pairs if word == option]


def by_options(command: Command) -> list[str]:
    """Settings that options of the command stand for: `compare` names its tier by one."""
    if command.words[0] != "compare":
        return []
    return [f'debias.tier="{(values(command, "--tier") or ["prompts"])[-1]}"']


def test_the_pages_show_commands():
    assert len([c for c in ALL if c.page == "README.md"]) >= 7
    assert len({c.words[0] for c in ALL}) >= 12


@pytest.mark.parametrize("command", ALL, ids=str)
def test_a_command_and_its_options_exist(command):
    name, *rest = command.words
    if name.startswith("--"):
        assert name in {option for p in GROUP.params for option in p.opts} | {"--help"}
        return
    assert name in GROUP.commands, f"there is no d2cp {name}"
    known = {option for p in GROUP.commands[name].params for option in p.opts} | {"--help"}
    shown = {word.partition("=")[0] for word in rest if word.startswith("--")}
    assert shown <= known, f"d2cp {name} has no {shown - known}"
    if command.whole and "--help" not in rest:
        GROUP.commands[name].make_context(name, rest)


@pytest.mark.parametrize("command", ALL, ids=str)
def test_names_and_settings_in_a_command_exist(command):
    presets = [name for name in values(command, "--preset") if not name.isupper()]
    assert set(presets) <= set(preset_names())
    named = {n for value in values(command, "--methods") for n in value.split(",")}
    assert named <= {"all", *methods(), *OWN}
    load_config(*presets[:1], assignments=[*values(command, "--set"), *by_options(command)])


@pytest.mark.parametrize(
    "words", sorted({c.words for c in ALL if is_quick(c)}), ids=lambda words: " ".join(words)
)
def test_a_quick_command_runs(words):
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.output
    assert done.output.strip()


def test_settings_named_in_text_are_settings():
    """`--set …` outside of a whole command, such as in a table of ablation rows."""
    found = []
    for text in documentation.pages().values():
        for span in documentation._SPAN.findall(documentation._FENCE.sub("", text)):
            if span.startswith("--set "):
                words = span.split()
                found += [words[i + 1] for i, word in enumerate(words) if word == "--set"]
    assert len(found) >= 8
    load_config(assignments=found)
