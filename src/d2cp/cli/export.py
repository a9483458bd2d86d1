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

    if onnx:
        from d2cp.export.onnx_file import require_onnx

        require_onnx()
    shipped = ship(
        RunDirectory.open(run).artifact("debias"), to, onnx=onnx, with_shortcut=with_shortcut
    )
    passes = "two branches" if with_shortcut else "one branch"
    typer.echo(f"{to}: {shipped.parameters:,} parameters, {passes}")
    if shipped.onnx_difference is not None:
        typer.echo(f"model.onnx agrees with torch to {shipped.onnx_difference:.1e}")
    typer.echo(f"next: d2cp predict {to} IMAGES…")
