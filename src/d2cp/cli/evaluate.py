"""`d2cp evaluate RUN…`: figures by group, over seeds, or on other data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from d2cp.cli import options

if TYPE_CHECKING:
    from rich.console import Console


def evaluate(
    runs: Annotated[list[Path], typer.Argument(help="Run directories; several seeds are pooled.")],
    data: Annotated[
        str | None, typer.Option(help="Another data set with the same classes.")
    ] = None,
    format_: options.Format = None,
    cache: options.Cache = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Score finished runs by group, with intervals; over several runs, mean ± deviation."""
    from rich.console import Console

    from d2cp.cli.show import show_results
    from d2cp.core.run_directory import RunDirectory
    from d2cp.report.summary import summarise

    results: list[dict[str, Any]] = []
    for path in runs:
        run = RunDirectory.open(path)
        if data is None:
            run.artifact("evaluate")
            results += summarise(run)["results"]
        else:
            from d2cp.data import load_table
            from d2cp.evaluate.elsewhere import evaluate_elsewhere

            results += evaluate_elsewhere(run, load_table(data, format=format_), cache_dir=cache)
    if as_json:
        typer.echo(json.dumps(results, indent=2))
        return
    console = Console(highlight=False)
    show_results(console, results)
    _show_groups(console, results)
    if len(runs) > 1:
        _show_over_seeds(console, results)


def _show_groups(console: Console, results: list[dict[str, Any]]) -> None:
    from rich.table import Table
    from rich.text import Text

    names = sorted({name for r in results for name in r["groups"]})
    table = Table(title="Accuracy by group (images)", box=None)
    for heading in ("method", "seed", "split", *names):
        table.add_column(heading, justify="right" if heading in names else "left")
    for r in results:
        cells = (
            f"{100 * g['accuracy']:.1f} ({g['n']})" if (g := r["groups"].get(name)) else "-"
            for name in names
        )
        table.add_row(Text(r["method"]), str(r["seed"]), r["split"], *cells)
    console.print(table)


def _show_over_seeds(console: Console, results: list[dict[str, Any]]) -> None:
    from rich.table import Table
    from rich.text import Text

    from d2cp.evaluate.metrics import over_seeds

    table = Table(title="Over seeds: mean ± standard deviation", box=None)
    for heading in ("method", "split", "seeds", "worst group", "mean", "train-weighted"):
        table.add_column(heading)
    keys = sorted({(r["method"], r["split"]) for r in results})
    for method, split in keys:
        these = [r for r in results if (r["method"], r["split"]) == (method, split)]
        figures = (
            str(over_seeds([r[key] for r in these]))
            for key in ("worst_group", "mean", "train_weighted_mean")
        )
        table.add_row(Text(method), split, str(len(these)), *figures)
    console.print(table)
