"""`d2cp check`: what a data set is, its counts, and what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from d2cp.cli import options

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from d2cp.data.inspection import CheckReport, Sizes

SHOWN = 10
WIDE = 24


def check(
    data: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help="A folder or file with a data set, or cmnist, cmnist10, digits-unbiased.",
        ),
    ],
    format: Annotated[
        str | None,
        typer.Option(
            help="Layout, when it is not recognised by itself: "
            "folders, csv, waterbirds, celeba, metashift, mnist, hub."
        ),
    ] = None,
    column: options.Column = None,
    images: options.Images = None,
    seed: Annotated[int, typer.Option(help="Seed of the split, where one has to be drawn.")] = 0,
    fast: Annotated[bool, typer.Option("--fast", help="Do not decode the images.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Say what was recognised, count it, and look for faults.

    Exit code: 0 clean, 1 something to act on, 3 not a data set.
    """
    from d2cp.core.progress import progress
    from d2cp.data.inspection import check_table
    from d2cp.data.open_table import load_table
    from d2cp.data.source import ColouredSource

    table = load_table(
        data, format=format, columns=options.columns(column), images=images, seed=seed
    )
    quiet = as_json or len(table) < 2000 or isinstance(table.source, ColouredSource)
    with progress(len(table), "reading images", quiet=quiet) as bar:
        report = check_table(table, decode_images=not fast, step=bar.step)
    if as_json:
        typer.echo(json.dumps(as_dict(report), indent=2))
    else:
        _print(report)
    raise typer.Exit(0 if report.clean else 1)


def as_dict(report: CheckReport) -> dict[str, Any]:
    return {**asdict(report), "counts_match": report.counts_match, "clean": report.clean}


def _print(report: CheckReport) -> None:
    from rich.console import Console
    from rich.text import Text

    from d2cp.core.text import visible

    console = Console(highlight=False, soft_wrap=True)

    def line(text: str, style: str = "") -> None:
        console.print(Text(visible(text), style=style))

    line(f"{report.name}: {report.rows} images, {len(report.class_names)} classes", "bold")
    line(f"recognised as {report.format}; images {report.images}")
    if report.sizes is not None:
        line(_size_line(report.sizes))
    for counted in _count_tables(report):
        console.print(counted)
    if report.counts_match is not None:
        verdict = "all equal" if report.counts_match else "NOT equal"
        line(f"found against published counts: {verdict}", "" if report.counts_match else "red")
    for record in report.unreadable[:SHOWN]:
        line(
            f"  unreadable: {record['id']} ({record['class']}, {record['split']}): "
            f"{record['reason']}"
        )
    if len(report.unreadable) > SHOWN:
        line(f"  … and {len(report.unreadable) - SHOWN} more; --json lists all")
    for duplicate in report.duplicates[:SHOWN]:
        where = ", ".join((*duplicate.splits, *duplicate.classes))
        line(f"  same image: {', '.join(duplicate.ids[:4])} ({where})")
    if len(report.duplicates) > SHOWN:
        line(f"  … and {len(report.duplicates) - SHOWN} more; --json lists all")
    for copy in report.copies[:SHOWN]:
        where = ", ".join((*copy.splits, *copy.classes))
        line(f"  copy in another size or encoding: {', '.join(copy.ids)} ({where})")
    if len(report.copies) > SHOWN:
        line(f"  … and {len(report.copies) - SHOWN} more; --json lists all")
    for note in report.notes:
        line(f"note: {note}", "dim")
    for problem in report.problems:
        line(f"problem: {problem}", "yellow")
    if report.clean:
        line("clean" if report.decoded else "clean (images not decoded)", "green")


def _size_line(sizes: Sizes) -> str:
    if sizes.smallest == sizes.largest:
        return "all images have {}×{} pixels".format(*sizes.median)
    listed = (sizes.smallest, sizes.largest, sizes.median)
    return "image sizes from {} to {}, median {}".format(*(f"{w}×{h}" for w, h in listed))


def _count_tables(report: CheckReport) -> Iterator[RichTable]:
    """A row a group and a column a split; with many groups, class × attribute for each split."""
    groups = list(next(iter(report.counts.values())))
    if len(groups) <= WIDE or report.attribute_names is None:
        names = [_names(report, group) for group in groups]
        headings = ["class", "attribute"] if report.attribute_names is not None else ["class"]
        columns = [(split, [_cell(report, split, g) for g in groups]) for split in report.counts]
        yield _table(headings, names, columns)
        return
    for split in report.counts:
        names = [[name] for name in report.class_names]
        columns = [
            (attribute, [_cell(report, split, f"{y},{a}") for y in range(len(report.class_names))])
            for a, attribute in enumerate(report.attribute_names)
        ]
        yield _table(["class"], names, columns, title=split)


def _names(report: CheckReport, group: str) -> list[str]:
    y, *a = (int(code) for code in group.split(","))
    return [report.class_names[y], *((report.attribute_names or ())[code] for code in a)]


def _cell(report: CheckReport, split: str, group: str) -> str:
    """The count; `found ≠ published` where they differ."""
    found = report.counts[split][group]
    wanted = (report.expected or {}).get(split, {}).get(group, found)
    return str(found) if found == wanted else f"{found} ≠ {wanted}"


def _table(
    headings: list[str],
    names: list[list[str]],
    columns: list[tuple[str, list[str]]],
    title: str | None = None,
) -> RichTable:
    from rich.table import Table as RichTable
    from rich.text import Text

    from d2cp.core.text import visible

    table = RichTable(box=None, padding=(0, 2, 0, 0), title=title, title_justify="left")
    for heading in headings:
        table.add_column(Text(visible(heading)))
    for heading, _ in columns:
        table.add_column(Text(visible(heading)), justify="right")
    for row, label in enumerate(names):
        cells = [*label, *(column[row] for _, column in columns)]
        table.add_row(*(Text(visible(cell)) for cell in cells))
    return table
