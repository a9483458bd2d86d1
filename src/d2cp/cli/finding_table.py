"""The findings of a scan as a table in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from d2cp.core.records import ReviewRecord


def show_findings(console: Console, findings: list[dict[str, Any]]) -> None:
    """The findings of a scan, best first."""
    from rich.table import Table
    from rich.text import Text

    from d2cp.core.text import visible

    table = Table(title=Text("What a model could cheat with"), box=None)
    table.add_column("finding", justify="right")
    table.add_column("what")
    for name in ("outcome", "strength", "agreement", "p"):
        table.add_column(name, justify="right", no_wrap=True)
    for f in findings:
        figures = (f"{f['strength']:.2f}", f"{f['agreement']:.1%}", f"{f['p_value']:.2g}")
        table.add_row(str(f["rank"]), Text(visible(f["name"])), f["outcome"], *figures)
    console.print(table)
    for f in findings:
        if "words" in f:
            line = f"  {f['rank']}. {visible(f['words']['sentence'])}"
            console.print(line, markup=False, soft_wrap=True)


def show_review(console: Console, review: ReviewRecord) -> None:
    """What to look at before any model is blamed."""
    from d2cp.core.text import visible

    if review["copies"]:
        first = review["copies"][0]
        console.print(
            f"Copies across splits: {review['copies_total']}, such as {visible(first['image'])} "
            f"({first['split']}) of {visible(first['copy_of'])} ({first['copy_split']})",
            markup=False,
            soft_wrap=True,
        )
    if review["labels"]:
        label = review["labels"][0]
        console.print(
            f"Labels to review: {review['labels_total']}, which every finding contradicts surely, "
            f"such as {visible(label['image'])}: {visible(label['class'])}, looks like "
            f"{visible(label['looks_like'])}",
            markup=False,
            soft_wrap=True,
        )


def show_leaning(console: Console, leaning: dict[str, Any]) -> None:
    """What the model of `--predictions` leans on."""
    from d2cp.core.text import visible

    console.print(
        f"The model of {visible(leaning['file'])}: {leaning['accuracy']:.1%} of "
        f"{leaning['images']} images right",
        style="bold",
        markup=False,
        soft_wrap=True,
    )
    for lean in leaning["findings"]:
        line = f"  {lean['rank']}. {visible(lean['name'])}: {visible(lean['sentence'])}"
        console.print(line, markup=False, soft_wrap=True)


def show_reliance(console: Console, reliance: dict[str, Any]) -> None:
    """Errors against each finding minus errors with it, before and after."""
    from rich.table import Table
    from rich.text import Text

    from d2cp.core.text import visible

    where = f"{reliance['images']} images of {', '.join(reliance['splits'])}"
    table = Table(
        title=Text(f"Reliance on each finding: points more errors against it; {where}"), box=None
    )
    table.add_column("finding", justify="right")
    table.add_column("what")
    for name in ("before", "after", "change"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for f in reliance["findings"]:
        figures = (
            points(f.get("erm", {}).get("gap")),
            points(f["d2cp"]["gap"]),
            points(f.get("change"), f.get("change_interval")),
        )
        mark = Text("")
        if f.get("rise"):
            sure = f.get("beyond_chance", False)
            mark = Text("ROSE", style="bold red") if sure else Text("rose, within chance")
        used = " (used)" if f["used"] else ""
        table.add_row(str(f["rank"]), Text(visible(f["name"]) + used), *figures, mark)
    console.print(table)
    for f in reliance["findings"]:
        if line := (f.get("transplant") or {}).get("sentence"):
            console.print(f"  {f['rank']}. {visible(line)}", markup=False, soft_wrap=True)


def points(value: float | None, interval: list[float] | None = None) -> str:
    if value is None:
        return "-"
    spread = f" [{100 * interval[0]:+.1f}, {100 * interval[1]:+.1f}]" if interval else ""
    return f"{100 * value:+.1f}{spread}"
