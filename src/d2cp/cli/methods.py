"""`d2cp methods`: the rivals, what each may see, and how faithful each is."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer


def methods(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print names, needs and search spaces for scripts.")
    ] = False,
) -> None:
    """List the methods that `d2cp compare` can run."""
    from d2cp.compare.registry import methods as known

    specs = [method.spec for method in known().values()]
    if as_json:
        listed: list[dict[str, Any]] = []
        for spec in specs:
            values = asdict(spec)
            listed.append({**values, "needs": sorted(spec.needs), "tiers": list(spec.tiers)})
        typer.echo(json.dumps(listed, indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None)
    for title in ("name", "method", "venue", "true groups", "needs", "fidelity"):
        table.add_column(title, overflow="fold")
    for spec in specs:
        seen = "train" if spec.sees_train_groups else "val" if spec.fits_on_val_groups else "none"
        needs = ", ".join(sorted(spec.needs))
        table.add_row(spec.name, spec.title, spec.venue, seen, needs, spec.fidelity)
    console = Console(highlight=False)
    console.print(table, markup=False)
    console.print("NAME@mined: a method that asks for groups, on the mined ones.", markup=False)
