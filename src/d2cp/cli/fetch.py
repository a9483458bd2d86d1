"""`d2cp fetch NAME DIR`: a published data set from its publisher."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def fetch(
    name: Annotated[str, typer.Argument(help="waterbirds, celeba or metashift.")],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where it goes.")],
    accept_licence: Annotated[
        bool,
        typer.Option("--accept-licence", help="The licence is read and accepted: do not ask."),
    ] = False,
) -> None:
    """Show the licence; fetch, verify, unpack. Killed anywhere, the same command goes on."""
    from d2cp.core.progress import progress
    from d2cp.data.fetch.bring import bring
    from d2cp.data.fetch.catalogue import published
    from d2cp.errors import ConfigError

    wanted = published(name)
    size = wanted.size
    typer.echo(wanted.title)
    typer.echo("size: " + ("not published" if size is None else f"{size / 2**30:.2f} GiB"))
    typer.echo(f"licence: {wanted.licence}")
    if not accept_licence:
        if not sys.stdin.isatty():
            raise ConfigError(
                "the licence has not been accepted",
                expected="--accept-licence, or an answer at a terminal",
                remedy=f"read it above, then: d2cp fetch {name} {folder} --accept-licence",
            )
        typer.confirm("Do you accept it?", abort=True)
    with progress(100, name) as bar:
        seen = 0

        def step(there: int, whole: int | None) -> None:
            nonlocal seen
            percent = 0 if not whole else 100 * there // whole
            while seen < percent:
                seen += 1
                bar.step(1)

        bring(wanted, folder, lambda text: typer.echo(text, err=True), step)
    typer.echo(f"next: d2cp check {folder}")
