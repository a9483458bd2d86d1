"""The command that was typed, as words: for jobs that run a part of it."""

from __future__ import annotations

import sys
from collections.abc import Collection

import typer

PROGRAM = (sys.executable, "-m", "d2cp")  # the same Python, also where no `d2cp` is on the path


def same_command(context: typer.Context, name: str, *, without: Collection[str] = ()) -> list[str]:
    """The words of sub-command `name` with the options that were given, but for some."""
    words = [name]
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if parameter.name in without or value is None or value == parameter.get_default(context):
            continue
        option = [] if parameter.param_type_name == "argument" else parameter.opts[:1]
        if isinstance(value, bool):
            words += option if value else parameter.secondary_opts[:1]
        else:
            for one in value if isinstance(value, (list, tuple)) else [value]:
                words += [*option, str(one)]
    return words
