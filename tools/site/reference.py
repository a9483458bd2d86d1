"""Reference pages, written from the code: commands, settings, modules."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer

import d2cp
from d2cp.cli.app import app
from d2cp.config import load_config, preset_names
from d2cp.config.explained import Setting, explain
from d2cp.config.whole import Config

PACKAGE = Path(d2cp.__file__).parent


def pages() -> dict[str, str]:
    """Markdown by its place in the site."""
    made = {
        "reference/commands.md": commands_page(),
        "reference/configuration.md": configuration_page(),
    }
    return made | {f"reference/{name}.md": text for name, text in package_pages().items()}


def commands() -> dict[str, Any]:
    """The parsed sub-commands by name."""
    return dict(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def commands_page() -> str:
    parts = ["# Commands", "Made from the commands' own help.", "[TOC]"]
    for name, command in commands().items():
        parts += [f"## d2cp {name}", _paragraphs(command.help or ""), _parameters(command)]
    return "\n\n".join(parts) + "\n"


def _parameters(command: Any) -> str:
    rows = []
    for parameter in command.params:
        if parameter.param_type_name == "option":
            name, note = ", ".join(f"`{o}`" for o in parameter.opts), parameter.help or ""
            usual = parameter.default
            shown = "" if usual in (None, False, ()) or callable(usual) else f"`{usual}`"
            rows.append((name, "required" if parameter.required else shown, note))
        else:
            note = parameter.help or ""
            rows.append((f"`{(parameter.metavar or parameter.name or '').upper()}`", "", note))
    return table(("argument or option", "default", "meaning"), rows)


def configuration_page() -> str:
    """Every setting; beside the default, the presets that set it otherwise."""
    resolved = {name: load_config(name).to_dict() for name in preset_names()}
    tables: dict[str, list[tuple[str, ...]]] = {}
    for setting in explain(Config):
        if setting.name == "preset":
            continue
        where = setting.name.rpartition(".")[0]
        others: dict[str, list[str]] = {}
        for preset, values in resolved.items():
            value = _look_up(values, setting.name)
            if value != _plain(setting.default):
                others.setdefault(_value(value), []).append(preset)
        tables.setdefault(where, []).append(_row(setting, others))
    parts = [
        "# Configuration",
        "Made from the dataclasses in `d2cp.config`. Any setting can be given as "
        "`--set NAME=VALUE`, or in a TOML file with `--config`; `d2cp presets NAME --explain` "
        "prints one preset in this form.",
    ]
    heads = ("setting", "kind", "default", "meaning", "in presets")
    for where, rows in tables.items():
        parts += [f"## `{where}`" if where else "## The run", table(heads, rows)]
    return "\n\n".join(parts) + "\n"


def _row(setting: Setting, others: dict[str, list[str]]) -> tuple[str, ...]:
    default = "" if setting.default is None else _value(setting.default)
    elsewhere = "<br>".join(f"{value}: {', '.join(names)}" for value, names in others.items())
    key = setting.name.rpartition(".")[2]
    return (f"`{key}`", setting.kind, default, setting.note, elsewhere)


def package_pages() -> dict[str, str]:
    """One page a package, every module with its docstring and public names, and their list."""
    made = {"python": _python_page()}
    listed = []
    for folder in sorted(p for p in PACKAGE.iterdir() if (p / "__init__.py").is_file()):
        modules = sorted(
            ".".join(("d2cp", *path.relative_to(PACKAGE).with_suffix("").parts))
            for path in folder.rglob("*.py")
            if path.name != "__init__.py"
        )
        if modules:
            head = f"# d2cp.{folder.name}\n\n"
            about = ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8"))) or ""
            name = f"[`d2cp.{folder.name}`](modules/{folder.name}.md)"
            listed.append((name, str(len(modules)), about.partition("\n\n")[0].replace("\n", " ")))
            made[f"modules/{folder.name}"] = head + "\n\n".join(f"::: {m}" for m in modules) + "\n"
    heads = ("package", "modules", "what it is")
    made["modules"] = f"# Modules\n\n{table(heads, listed)}\n"
    return made


def _python_page() -> str:
    names = ("d2cp.estimator.D2CP", "d2cp.api.discover", "d2cp.api.run", "d2cp.data.load_table")
    shown = "\n\n".join(f"::: {name}" for name in (*names, "d2cp.config.load_config"))
    errors = "::: d2cp.errors\n    options:\n      show_root_heading: false"
    return f"# Python\n\n{shown}\n\n## Errors\n\n{errors}\n"


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = list(heads)
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _paragraphs(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def _value(value: Any) -> str:
    return f"`{json.dumps(_plain(value))}`"


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


def _look_up(values: dict[str, Any], name: str) -> Any:
    found: Any = values
    for part in name.split("."):
        found = found[part]
    return found
