"""The findings of a scan as a table in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def show_findings(console: Console, findings: list[dict[str, Any]]) -> None:
    """The findings of a scan, best first."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text("What a model could cheat with"), box=None)
    table.add_column("finding", justify="right")
    table.add_column("what")
    for name in ("outcome", "strength", "agreement", "p"):
        table.add_column(name, justify="right", no_wrap=True)
    for f in findings:
        figures = (f"{f['strength']:.2f}", f"{f['agreement']:.1%}", f"{f['p_value']:.2g}")
        table.add_row(str(f["rank"]), Text(f["name"]), f["outcome"], *figures)
    console.print(table)
