"""`d2cp show RUN`: what a run found and reached, for people or for scripts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console


def show(
    run: Annotated[Path, typer.Argument(help="A run directory.")],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print documented, stable keys for scripts.")
    ] = False,
) -> None:
    """Print what a run found: data, verdict, results, times."""
    from d2cp.core.run_directory import RunDirectory
    from d2cp.report.summary import summarise

    whole = summarise(RunDirectory.open(run))
    if as_json:
        typer.echo(json.dumps(whole, indent=2, ensure_ascii=False))
        return
    from rich.console import Console

    console = Console(highlight=False)
    if "data" in whole:
        _show_counts(console, whole["data"])
    if "discover" in whole:
        _show_discovery(console, whole["discover"])
    if "results" in whole:
        show_results(console, whole["results"])
    times = ", ".join(f"{stage} {s:.0f} s" for stage, s in whole["seconds"].items())
    console.print(f"Times: {times or 'no stage has finished yet'}", markup=False)


def _show_counts(console: Console, data: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(f"Data set {data['name']}"), box=None)
    cells = sorted({cell for counts in data["counts"].values() for cell in counts})
    table.add_column("split")
    for cell in cells:
        table.add_column(f"group {cell}" if "," in cell else f"class {cell}", justify="right")
    for split, counts in data["counts"].items():
        table.add_row(Text(split), *(str(counts.get(cell, 0)) for cell in cells))
    console.print(table)


def _show_discovery(console: Console, found: dict[str, Any]) -> None:
    console.print(f"Shortcut: {found['verdict']}", style="bold", markup=False)
    if "sentence" in found:
        console.print(found["sentence"], markup=False)
    for split, recall in found.get("recall", {}).items():
        shares = ", ".join(f"{g}: {r:.3f}" for g, r in recall.items())
        balanced = found["balanced_accuracy"][split]
        console.print(f"  {split}: recall by group {shares}; balanced {balanced:.3f}", markup=False)
    for warning in found.get("warnings", []):
        console.print(f"  note: {warning}", markup=False)


def show_results(console: Console, results: list[dict[str, Any]]) -> None:
    """One row a result; a seed or selection rule that all rows share is said in the title, rules
    that go with the method below the table: a column of them does not fit a terminal."""
    from rich.table import Table
    from rich.text import Text

    shared = [k for k in ("seed", "selection") if len({r[k] for r in results}) == 1]
    said = ", ".join(f"{k} {results[0][k]}" for k in shared)
    table = Table(
        title=Text(f"Accuracy in %, with 95% intervals{'; ' if said else ''}{said}"), box=None
    )
    rules = {str(r["method"]): str(r["selection"]) for r in results}
    by_method = all(rules[str(r["method"])] == r["selection"] for r in results)
    hidden = [*shared, *(["selection"] if by_method else [])]
    own = [k for k in ("method", "split", "seed", "selection") if k not in hidden]
    for name in own:
        table.add_column(name, no_wrap=True)
    for name in ("worst group", "mean", "train-weighted"):
        table.add_column(name, justify="right", no_wrap=True)
    for r in results:
        spread = r.get("intervals", {})
        figures = (
            _with_interval(r[key], spread.get(key))
            for key in ("worst_group", "mean", "train_weighted_mean")
        )
        table.add_row(*(Text(str(r[k])) for k in own), *figures)
    console.print(table)
    if by_method and "selection" not in shared:
        listed = ", ".join(f"{method} {rule}" for method, rule in rules.items())
        console.print(f"selection: {listed}", markup=False)


def _with_interval(value: float, interval: list[float] | None) -> str:
    text = f"{100 * value:.1f}"
    return text if not interval else f"{text} [{100 * interval[0]:.1f}, {100 * interval[1]:.1f}]"
