"""`d2cp scan DATA`: what could a model cheat with? Seconds to a minute, no training of networks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from d2cp.cli import options

if TYPE_CHECKING:
    from d2cp.core.records import ReviewRecord
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
    words: Annotated[
        Path | None,
        typer.Option(
            help="A file of words or phrases, one a line: which of them go with a finding, by the "
            "CLIP of --backbone?"
        ),
    ] = None,
    backbone: Annotated[
        str | None,
        typer.Option(
            help="A whole CLIP (both towers and tokenizer) that reads --words: a local folder, or "
            "a name on the Hugging Face hub."
        ),
    ] = None,
    predictions: Annotated[
        Path | None,
        typer.Option(
            help="CSV of any model's answers (image, and a class or one probability a class): "
            "on which findings does that model lean?"
        ),
    ] = None,
    prediction_column: Annotated[
        str | None, typer.Option(help="The column of --predictions that holds the class.")
    ] = None,
    preset: options.ChosenPreset = None,
    set_: options.Set = None,
    seed: Annotated[
        int | None, typer.Option(help="As for `run`; a folder that was started keeps its own [0].")
    ] = None,
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
    from d2cp.api import scan as run_scan
    from d2cp.core.records import ScanRecord
    from d2cp.core.run_directory import RunDirectory
    from d2cp.report.build import write_report
    from d2cp.report.steps import next_steps

    if prediction_column and not predictions:
        raise typer.BadParameter("there is no --predictions", param_hint="--prediction-column")
    asked = options.request(preset, None, set_, seed or 0) if preset or set_ else None
    found = run_scan(
        data,
        out=out,
        config=asked,
        seed=seed,
        suspects=[name.strip() for name in columns.split(",") if name.strip()],
        words=words,
        backbone=backbone,
        format=format_,
        columns=options.columns(column),
        images=images,
        scores_out=scores_out,
        cache_dir=cache,
        force=force,
        quiet=quiet or as_json,
    )
    run = RunDirectory.open(out)
    folder = run.artifact("scan")
    leaning = _lean(found, folder, predictions, prediction_column) if predictions else None
    report = write_report(run)
    review = run.read("scan", "findings.json", ScanRecord)["review"]
    if as_json:
        whole: dict[str, Any] = {
            "outcome": found.outcome,
            "findings": [f.to_dict() for f in found.findings],
        }
        whole |= {"review": review} | ({"predictions": leaning} if leaning else {})
        typer.echo(json.dumps(whole, indent=2, ensure_ascii=False))
    else:
        _print(found, review, leaning)
        for line in [f"Report: {report}"] if quiet else next_steps(run):
            typer.echo(line)
    bad = {"never": (), "found": ("found",), "weak": ("found", "weak")}[fail_on]
    if found.outcome in bad:
        raise typer.Exit(FOUND_EXIT)


def _lean(found: Scan, folder: Path, file: Path, column: str | None) -> dict[str, Any]:
    """Read a model's answers and keep what they say beside the scan."""
    from d2cp.core.files import write_json
    from d2cp.errors import DataError
    from d2cp.evaluate.leaning import leaning
    from d2cp.evaluate.prediction_file import read_predictions
    from d2cp.scan.scanned_rows import read_scanned_rows

    if not found.findings:
        raise DataError("the scan has no finding that a model could lean on")
    rows = read_scanned_rows(folder)
    made = {
        "file": str(file),
        "column": column,
        **leaning(read_predictions(file, rows, column), rows, found.findings),
    }
    write_json(folder / "predictions.json", made)
    return made


def _print(found: Scan, review: ReviewRecord, leaning: dict[str, Any] | None) -> None:
    from rich.console import Console

    from d2cp.cli.finding_table import show_findings, show_leaning, show_review

    console = Console(highlight=False)
    show_findings(console, [f.to_dict() for f in found.findings])
    for note in found.notes:
        typer.echo(f"note: {note}")
    show_review(console, review)
    if leaning:
        show_leaning(console, leaning)
