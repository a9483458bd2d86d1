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
    from d2cp.core.text import visible
    from d2cp.report.summary import summarise

    whole = summarise(RunDirectory.open(run))
    if as_json:
        typer.echo(printable(whole))
        return
    from rich.console import Console

    console = Console(highlight=False)
    if "data" in whole:
        _show_counts(console, whole["data"])
    if "findings" in whole:
        from d2cp.cli.finding_table import show_findings

        show_findings(console, whole["findings"])
    if "discover" in whole and "data" in whole:
        _show_discovery(console, whole["discover"], whole["data"])
    if "results" in whole:
        from d2cp.cli.result_tables import show_results

        show_results(console, whole["results"])
    if "reliance" in whole:
        from d2cp.cli.finding_table import show_reliance

        show_reliance(console, whole["reliance"])
    for sentence in whole.get("choice", {}).get("sentences", []):
        console.print(visible(sentence), markup=False)
    times = ", ".join(f"{stage} {s:.0f} s" for stage, s in whole["seconds"].items())
    console.print(f"Times: {times or 'no stage has finished yet'}", markup=False)


def printable(value: Any) -> str:
    """JSON as people read it; names that are no UTF-8 as escapes."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, indent=2)
    return text


def _show_counts(console: Console, data: dict[str, Any]) -> None:
    """Images of every class and, where it is known, attribute: a row each, a column a split."""
    from rich.table import Table
    from rich.text import Text

    from d2cp.core.text import visible

    table = Table(title=Text(f"Data set {visible(data['name'])}: images"), box=None)
    cells = dict.fromkeys(cell for counts in data["counts"].values() for cell in counts)
    table.add_column("class and attribute" if "attribute_names" in data else "class")
    for split in data["counts"]:
        table.add_column(Text(visible(split)), justify="right")
    for cell in cells:
        counts = (str(found.get(cell, 0)) for found in data["counts"].values())
        table.add_row(Text(_named(cell, data)), *counts)
    console.print(table)
    for line in (*data.get("warnings", []), *data.get("notes", [])):
        console.print(f"  data: {visible(line)}", markup=False, soft_wrap=True)


def _named(cell: str, data: dict[str, Any]) -> str:
    from d2cp.core.text import visible
    from d2cp.evaluate.result import group_name

    return visible(group_name(cell, "true", data["class_names"], data.get("attribute_names")))


def _show_discovery(console: Console, found: dict[str, Any], data: dict[str, Any]) -> None:
    from d2cp.core.text import visible

    console.print(f"Shortcut: {found['verdict']}", style="bold", markup=False)
    console.print(visible(found["sentence"]), markup=False)
    if "findings" in found:
        _show_groups_of_findings(console, found)
    for split, recall in found.get("recall", {}).items():
        shares = "; ".join(f"{_named(g, data)}: {r:.3f}" for g, r in recall.items())
        balanced = found.get("balanced_accuracy", {}).get(split)
        said = f"  {visible(split)}: recall by true group: {shares}"
        known = "" if balanced is None else f"; balanced {balanced:.3f}"
        console.print(f"{said}{known}", markup=False)
    for warning in found.get("warnings", []):
        console.print(f"  note: {visible(warning)}", markup=False)


def _show_groups_of_findings(console: Console, found: dict[str, Any]) -> None:
    from d2cp.core.text import visible

    ranks = " and ".join(str(rank) for rank in found["findings"])
    values = "; ".join(
        f"{v}: {visible(name)}" for v, name in enumerate(found.get("value_names", []))
    )
    console.print(f"  groups by finding {ranks}, values {values}", markup=False, soft_wrap=True)
    if same := found.get("mined", {}).get("same_value"):
        console.print(f"  the mined concepts give {same:.1%} of training images the same value")
