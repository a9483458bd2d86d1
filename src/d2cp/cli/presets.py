"""`d2cp presets`: the named configurations, and what they set."""

from __future__ import annotations

from typing import Annotated

import typer


def presets(
    name: Annotated[str | None, typer.Argument(help="Print this one, resolved, as JSON.")] = None,
) -> None:
    """List the presets, or print one with every setting resolved."""
    import json
    from importlib.resources import files

    from d2cp.config import load_config, preset_names

    if name is not None:
        typer.echo(json.dumps(load_config(name).to_dict(), indent=2))
        return
    for known in preset_names():
        text = (files("d2cp.config.presets") / f"{known}.toml").read_text(encoding="utf-8")
        first = text.splitlines()[0].removeprefix("#").strip()
        typer.echo(f"{known:12} {first}")
