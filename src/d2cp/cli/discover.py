"""`d2cp discover DATA`: find the shortcut, show it, stop there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from d2cp.cli import options


def discover(
    data: options.Data,
    out: options.Out,
    preset: options.ChosenPreset = None,
    seed: options.Seed = 0,
    backbone: Annotated[
        str | None,
        typer.Option(help="Not used yet: recorded for a later `d2cp run` in the same directory."),
    ] = None,
    labels_out: Annotated[
        Path | None,
        typer.Option(help="Also write the pseudo labels here (image, class, value, score)."),
    ] = None,
    findings: options.Findings = "",
    corrections: options.Corrections = None,
    config: options.ConfigFile = None,
    set_: options.Set = None,
    format_: options.Format = None,
    column: options.Column = None,
    images: options.Images = None,
    train_limit: options.TrainLimit = None,
    cache: options.Cache = None,
    device: options.Device = None,
    precision: options.Precision = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Find the shortcut in a data set: verdict, pictures, a pseudo attribute for every image."""
    from d2cp.api import discover as run_discover

    settings = options.request(preset, config, set_, seed, backbone, train_limit, precision)
    run_discover(
        data,
        out=out,
        config=settings,
        format=format_,
        columns=options.columns(column),
        images=images,
        corrections=corrections,
        findings=options.ranks(findings),
        labels_out=labels_out,
        cache_dir=cache,
        device=device,
        force=force,
        quiet=quiet,
    )
    options.close(out, quiet, as_json)
