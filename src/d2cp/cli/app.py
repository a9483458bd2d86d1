"""The `d2cp` command and its sub-commands, one file each."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from d2cp import __version__
from d2cp.cli.cache import cache
from d2cp.cli.check import check
from d2cp.cli.compare import compare
from d2cp.cli.demo import demo
from d2cp.cli.discover import discover
from d2cp.cli.doctor import doctor
from d2cp.cli.evaluate import evaluate
from d2cp.cli.export import export
from d2cp.cli.fetch import fetch
from d2cp.cli.methods import methods
from d2cp.cli.predict import predict
from d2cp.cli.presets import presets
from d2cp.cli.probe import probe
from d2cp.cli.report import report
from d2cp.cli.reproduce import reproduce
from d2cp.cli.run import run
from d2cp.cli.scan import scan
from d2cp.cli.show import show
from d2cp.errors import StoppedError

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


COMMANDS = (
    *(check, scan, discover, run, demo, show, evaluate, report, export, predict),
    *(compare, reproduce, fetch, methods, presets, probe, cache, doctor),
)
GOES_ON = (discover, run, demo, compare, reproduce, fetch)


def _stoppable(command: Callable[..., None]) -> Callable[..., None]:
    """Ctrl-C in plain words; typer would swallow it."""

    @wraps(command)
    def guarded(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
        except KeyboardInterrupt:
            after = "; the same command goes on where it was" if command in GOES_ON else ""
            raise StoppedError(f"stopped{after}") from None

    return guarded


for command in COMMANDS:
    app.command()(_stoppable(command))
