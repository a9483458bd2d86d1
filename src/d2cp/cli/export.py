"""`d2cp export`: one folder to ship, with the projection folded into the head."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def export(
    run: Annotated[Path, typer.Argument(help="A finished run.")],
    to: Annotated[Path, typer.Option("--to", help="Folder to write; an older export is replaced.")],
    onnx: Annotated[
        bool, typer.Option("--onnx", help="Also model.onnx, checked in onnxruntime.")
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(help="`d2cp` or `erm`, instead of the one that the run recommends."),
    ] = None,
    with_shortcut: Annotated[
        bool,
        typer.Option(
            "--with-shortcut",
            help="Keep the spurious branch: predict then names the suspected shortcut value, "
            "at the cost of a second pass.",
        ),
    ] = False,
) -> None:
    """Write a Hugging Face-style model folder that needs nothing of the run or its backbone."""
    from d2cp.core.run_directory import RunDirectory
    from d2cp.export.ship import ship
    from d2cp.export.which import which_model

    if onnx:
        from d2cp.export.onnx_file import require_onnx

        require_onnx()
    directory = RunDirectory.open(run)
    which = which_model(directory, model)
    shipped = ship(directory.artifact(which.stage), to, onnx=onnx, with_shortcut=with_shortcut)
    for sentence in which.sentences:
        typer.echo(sentence)
    passes = "two branches" if with_shortcut else "one branch"
    typer.echo(f"{to}: {which.name}, {shipped.parameters:,} parameters, {passes}")
    if shipped.onnx_difference is not None:
        typer.echo(f"model.onnx agrees with torch to {shipped.onnx_difference:.1e}")
    typer.echo(f"next: d2cp predict {to} IMAGES…")
