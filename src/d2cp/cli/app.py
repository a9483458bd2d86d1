"""The `d2cp` command and its sub-commands, one file each."""

from __future__ import annotations

from typing import Annotated

import typer

from d2cp import __version__
from d2cp.cli.doctor import doctor
from d2cp.cli.show import show

app = typer.Typer(
    name="d2cp",
    help="Find the shortcut in an image data set, look at it, train a classifier without it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"d2cp {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


for command in (show, doctor):
    app.command()(command)
