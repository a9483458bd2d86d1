"""`d2cp evaluate RUN…`: figures by group, over seeds, or on other data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from d2cp.cli import options


def evaluate(
    runs: Annotated[list[Path], typer.Argument(help="Run directories; several seeds are pooled.")],
    data: Annotated[
        str | None, typer.Option(help="Another data set with the same classes.")
    ] = None,
    format_: options.Format = None,
    column: options.Column = None,
    images: options.Images = None,
    cache: options.Cache = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Score finished runs by group, with intervals; over several runs, mean ± deviation."""
    from rich.console import Console

    from d2cp.cli import result_tables as tables
    from d2cp.core.run_directory import RunDirectory
    from d2cp.evaluate.pooling import require_one_experiment
    from d2cp.report.summary import summarise

    opened = [RunDirectory.open(path) for path in runs]
    require_one_experiment(opened)
    results: list[dict[str, Any]] = []
    for run in opened:
        if data is None:
            run.artifact("evaluate")
            results += summarise(run)["results"]
        else:
            from d2cp.data import load_table
            from d2cp.evaluate.elsewhere import evaluate_elsewhere

            table = load_table(data, format=format_, columns=options.columns(column), images=images)
            results += evaluate_elsewhere(run, table, cache_dir=cache)
    if as_json:
        typer.echo(json.dumps(results, indent=2))
        return
    console = Console(highlight=False)
    tables.show_results(console, results)
    tables.show_groups(console, results)
    if len(runs) > 1:
        tables.show_over_seeds(console, results)
