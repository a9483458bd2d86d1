"""`d2cp presets`: the named configurations, and what they set."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import Annotated, Any

import typer


def presets(
    name: Annotated[str | None, typer.Argument(help="Print this one, resolved, as JSON.")] = None,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="With a name: as TOML, each setting with what it means."),
    ] = False,
) -> None:
    """List the presets, or print one with every setting resolved."""
    from importlib.resources import files

    from d2cp.config import load_config, preset_names

    if name is not None:
        resolved = load_config(name).to_dict()
        typer.echo("\n".join(explained(resolved)) if explain else json.dumps(resolved, indent=2))
        return
    if explain:
        raise typer.BadParameter("it needs the name of a preset", param_hint="--explain")
    for known in preset_names():
        text = (files("d2cp.config.presets") / f"{known}.toml").read_text(encoding="utf-8")
        first = text.splitlines()[0].removeprefix("#").strip()
        typer.echo(f"{known:12} {first}")


def explained(resolved: dict[str, Any]) -> Iterator[str]:
    """TOML lines that `--config` takes; what has no value yet is a comment."""
    from d2cp.config.explained import Setting, explain
    from d2cp.config.whole import Config

    tables: dict[str, list[Setting]] = {}
    for setting in explain(Config):
        if setting.name != "preset":
            tables.setdefault(setting.name.rpartition(".")[0], []).append(setting)
    for table, settings in tables.items():
        values = resolved
        for part in filter(None, table.split(".")):
            values = values[part]
        if table:
            yield f"\n[{table}]"
        for setting in settings:
            yield from textwrap.wrap(setting.note, 96, initial_indent="# ", subsequent_indent="# ")
            key = setting.name.rpartition(".")[2]
            held = values[key]
            empty = held is None
            yield f"# {key} = {setting.kind}" if empty else f"{key} = {json.dumps(held)}"
