"""`d2cp predict`: one JSON line an image."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer


def predict(
    model: Annotated[Path, typer.Argument(help="A folder written by d2cp export.")],
    images: Annotated[
        list[Path],
        typer.Argument(help="Image files, folders of them, or `-`: names from standard input."),
    ],
    batch: Annotated[int, typer.Option(min=1, help="Images worked on together.")] = 32,
) -> None:
    """Print file, label and probabilities of each image, and its suspected shortcut value if the
    model was exported with it.

    An image that cannot be read gives a line with its error; the exit code is then 1.
    """
    from d2cp.export.image_list import image_list
    from d2cp.export.serving import Deployed

    listed = image_list(images, sys.stdin)
    if note := listed.note():
        typer.echo(note, err=True)
    failed = False
    for record in Deployed.load(model).predict(listed.files, batch):
        failed |= "error" in record
        typer.echo(json.dumps(record))
    raise typer.Exit(1 if failed else 0)
