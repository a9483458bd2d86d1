"""`d2cp scan DATA`: what could a model cheat with? Seconds to a minute, no training of networks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from d2cp.cli import options

if TYPE_CHECKING:
    from d2cp.scan.finding import Scan

FOUND_EXIT = 10


def scan(
    data: options.Data,
    out: options.Out,
    scores_out: Annotated[
        Path | None,
        typer.Option(
            help="Also write one line an image and finding: image,split,class,finding,value,score."
        ),
    ] = None,
    columns: Annotated[
        str, typer.Option(help="Further columns of the CSV to suspect, such as camera,site.")
    ] = "",
    seed: options.Seed = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    fail_on: Annotated[
        Literal["found", "weak", "never"],
        typer.Option(help="Exit with code 10 when the outcome is this, or worse."),
    ] = "never",
    format_: options.Format = None,
    column: options.Column = None,
    images: options.Images = None,
    cache: options.Cache = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Look for shortcuts through a bank of lenses and rank what they find.

    Exit code: 0 done, 10 where --fail-on says so, others as for every command.
    """
    from d2cp.config.scan import ScanConfig
    from d2cp.scan.run_scan import run_scan

    named = tuple(name.strip() for name in columns.split(",") if name.strip())
    found = run_scan(
        data,
        out=out,
        config=ScanConfig(seed=seed, columns=named),
        format=format_,
        roles=options.columns(column),
        images=images,
        scores_out=scores_out,
        cache_dir=cache,
        force=force,
        quiet=quiet or as_json,
    )
    if as_json:
        whole = {"outcome": found.outcome, "findings": [f.to_dict() for f in found.findings]}
        typer.echo(json.dumps(whole, indent=2, ensure_ascii=False))
    else:
        _print(found)
    bad = {"never": (), "found": ("found",), "weak": ("found", "weak")}[fail_on]
    if found.outcome in bad:
        raise typer.Exit(FOUND_EXIT)


def _print(found: Scan) -> None:
    from rich.console import Console

    from d2cp.cli.finding_table import show_findings

    show_findings(Console(highlight=False), [f.to_dict() for f in found.findings])
    for note in found.notes:
        typer.echo(f"note: {note}")
