"""`d2cp run DATA`: the whole method, from images to a report."""

from __future__ import annotations

from typing import Annotated

import typer

from d2cp.cli import options


def run(
    data: options.Data,
    out: options.Out,
    preset: options.ChosenPreset = None,
    seed: options.Seed = 0,
    backbone: options.Backbone = None,
    control: Annotated[
        bool, typer.Option(help="Also train the ERM control, for the figures before and after.")
    ] = True,
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
    tensorboard: Annotated[bool, typer.Option(help="Write TensorBoard events too.")] = False,
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Check, discover, debias, evaluate, report. Killed anywhere, the same command goes on."""
    from d2cp.api import run as run_all

    settings = options.request(preset, config, set_, seed, backbone, train_limit, precision)
    run_all(
        data,
        out=out,
        config=settings,
        format=format_,
        columns=options.columns(column),
        images=images,
        corrections=corrections,
        findings=options.ranks(findings),
        control=control,
        cache_dir=cache,
        device=device,
        tensorboard=tensorboard,
        force=force,
        quiet=quiet,
    )
    options.close(out, quiet, as_json)
