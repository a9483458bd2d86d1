"""Results as tables in a terminal; what the columns are is told by `evaluate.columns`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from d2cp.core.text import visible
from d2cp.evaluate.columns import COLUMNS, groupings
from d2cp.evaluate.metrics import over_seeds

Results = Sequence[dict[str, Any]]
GROUPS = {"true": "true group", "pseudo": "suspected group", "class": "class"}


def show_results(console: Console, results: Results) -> None:
    """One row a result; a seed or selection rule that all rows share is said in the title, rules
    that go with the method below the table: a column of them does not fit a terminal."""
    shared = [k for k in ("seed", "selection") if len({r[k] for r in results}) == 1]
    said = ", ".join(f"{k} {results[0][k]}" for k in shared)
    table = Table(
        title=Text(f"Accuracy in %, with 95% intervals{'; ' if said else ''}{said}"), box=None
    )
    rules = {str(r["method"]): str(r["selection"]) for r in results}
    by_method = all(rules[str(r["method"])] == r["selection"] for r in results)
    mixed = len(groupings(results)) > 1
    hidden = [*shared, *(["selection"] if by_method else []), *([] if mixed else ["grouping"])]
    own = [k for k in ("method", "split", "seed", "selection", "grouping") if k not in hidden]
    for name in own:
        table.add_column("groups" if name == "grouping" else name, no_wrap=True)
    add_columns(table, results)
    for r in results:
        spread = r.get("intervals", {})
        figures = (with_interval(r[c.key], spread.get(c.key)) for c in COLUMNS)
        said_of = (GROUPS[r[k]] if k == "grouping" else str(r[k]) for k in own)
        table.add_row(*(Text(text) for text in said_of), *figures)
    console.print(table)
    if by_method and "selection" not in shared:
        listed = ", ".join(f"{method} {rule}" for method, rule in rules.items())
        console.print(f"selection: {listed}", markup=False)


def show_groups(console: Console, results: Results) -> None:
    """A table a split: one row a group, by name; one column a model."""
    seeds = len({r["seed"] for r in results}) > 1
    for split in dict.fromkeys(r["split"] for r in results):
        these = [r for r in results if r["split"] == split]
        kind = " or ".join(sorted(GROUPS[g] for g in groupings(these)))
        table = Table(title=Text(f"{split}: accuracy in % (images) by {kind}"), box=None)
        table.add_column(kind)
        for r in these:
            name = f"{r['method']} seed {r['seed']}" if seeds else str(r["method"])
            table.add_column(Text(name), justify="right")
        names = {key: group["name"] for r in these for key, group in r["groups"].items()}
        for key in sorted(names, key=lambda key: [int(part) for part in key.split(",")]):
            cells = (
                f"{100 * g['accuracy']:.1f} ({g['n']})" if (g := r["groups"].get(key)) else "-"
                for r in these
            )
            table.add_row(Text(visible(names[key])), *cells)
        console.print(table)


def show_over_seeds(console: Console, results: Results) -> None:
    table = Table(title="Over seeds: mean ± standard deviation", box=None)
    for heading in ("method", "split", "seeds"):
        table.add_column(heading)
    add_columns(table, results)
    for method, split in sorted({(r["method"], r["split"]) for r in results}):
        these = [r for r in results if (r["method"], r["split"]) == (method, split)]
        figures = (str(over_seeds([r[c.key] for r in these])) for c in COLUMNS)
        table.add_row(Text(method), split, str(len(these)), *figures)
    console.print(table)


def add_columns(table: Table, results: Results) -> None:
    for column in COLUMNS:
        table.add_column(two_lines(column.titled(groupings(results))), justify="right")


def two_lines(heading: str) -> str:
    """What stands in brackets goes below: a terminal is narrow."""
    return heading.replace(" (", "\n(")


def with_interval(value: float, interval: Sequence[float] | None) -> str:
    text = f"{100 * value:.1f}"
    return text if not interval else f"{text} [{100 * interval[0]:.1f}, {100 * interval[1]:.1f}]"
