"""`d2cp report RUN`: one HTML file to look at, mail and act on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    run: Annotated[Path, typer.Argument(help="A run directory.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The file to write [RUN/report.html].")
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Write a run's report: one HTML file that needs no network."""
    from d2cp.core.run_directory import RunDirectory
    from d2cp.report.build import write_report
    from d2cp.report.words import megabytes

    file = write_report(RunDirectory.open(run), out)
    typer.echo(f"{file}  ({megabytes(file.stat().st_size)})")
    if show:
        import webbrowser

        webbrowser.open(file.resolve().as_uri())
