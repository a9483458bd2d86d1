"""`d2cp reproduce TABLE [DATA…]`: a table or figure of the paper, run again."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from d2cp.cli import options

if TYPE_CHECKING:
    from d2cp.executors import Job
    from d2cp.reproduce.cells import Cell
    from d2cp.reproduce.scales import Scale

ELSEWHERE = ("executor", "queue", "jobs", "print_commands", "only", "as_json", "dry_run")


def reproduce(
    context: typer.Context,
    table: Annotated[
        str,
        typer.Argument(
            help="table1, table2, table3, prompt-length, alpha, recall, concepts or gradcam."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="Folder of all tables; they share cells and stage 1."),
    ],
    data: Annotated[
        list[str] | None,
        typer.Argument(help="Folders or files with data sets, or embedded ones; default: cmnist."),
    ] = None,
    scale: Annotated[
        str,
        typer.Option(help="`paper`: its own settings whole. `here`: minutes a table on two cores."),
    ] = "here",
    seeds: Annotated[int, typer.Option(min=1, help="Seeds 0 ... N-1.")] = 3,
    rows: Annotated[
        str | None, typer.Option(help="Only these rows of the table, with commas between.")
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(metavar="DATA/ROW/SEED", help="Run this one cell and write no table."),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Print the plan: cells, what they share, passes, disk, and the time by a short "
            "measurement.",
        ),
    ] = False,
    masks: Annotated[
        Path | None,
        typer.Option(help="gradcam: masks of the images, a/b.png for a/b.jpg, white inside."),
    ] = None,
    executor: options.Executor = "local",
    jobs: options.Jobs = 0,
    queue: options.Queue = None,
    print_commands: options.PrintCommands = False,
    backbone: options.Backbone = None,
    set_: options.Set = None,
    format_: options.Format = None,
    column: options.Column = None,
    images: options.Images = None,
    cache: options.Cache = None,
    device: options.Device = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Run the cells that are missing; print and write the figures beside the paper's. Killed
    anywhere, the same command goes on; finished cells are kept."""
    from d2cp.cli.again import PROGRAM, same_command
    from d2cp.data.place import Place
    from d2cp.executors import Away, run_jobs
    from d2cp.reproduce.cells import cells_of, named
    from d2cp.reproduce.earlier import earlier
    from d2cp.reproduce.run_table import (
        data_sets,
        possible,
        require_place,
        run_cells,
        table_folder,
    )
    from d2cp.reproduce.run_table import reproduce as run_table
    from d2cp.reproduce.tables import chosen

    options.require_executor(executor)
    wanted = chosen(table, rows)
    roles = options.columns(column)
    sets = data_sets(
        [Place.of(path, format_, roles, images) for path in data or ["cmnist"]],
        out=out,
        scale=_scale(scale),
        backbone=backbone,
        assignments=set_ or [],
        cache_dir=cache,
        masks=masks,
    )

    cells = cells_of(wanted, sets, seeds)
    if device is not None or not all(cell.is_finished for cell in cells):
        from d2cp.core.device import use_device  # torch: a finished table does without

        use_device(device)

    def say(text: str) -> None:
        if not quiet:
            typer.echo(text, err=True)

    for line in earlier(cells):
        typer.echo(line, err=not dry_run)
    if dry_run:
        _plan(possible(cells, say))
        return
    require_place(out)
    if only is not None:
        run_cells([named(cells, only)], say, quiet=quiet)
        return
    folder = table_folder(wanted, sets)
    command = same_command(context, "reproduce", without=ELSEWHERE)
    if print_commands:
        for cell in possible(cells, say):
            typer.echo(shlex.join(["d2cp", *command, "--only", cell.name]))
        typer.echo(shlex.join(["d2cp", *command]))  # the last one writes the table
        return
    if executor != "local" or jobs > 1:
        away = Away(executor=executor, at_once=jobs, options=options.assigned("--queue", queue))
        left = possible(cells, say)
        run_jobs([_job(cell, [*PROGRAM, *command]) for cell in left], away, folder / "jobs", say)
    whole = run_table(wanted, sets, seeds, say, quiet=quiet)
    if as_json:
        typer.echo(json.dumps(whole, indent=2, ensure_ascii=False))
        return
    show(whole)
    typer.echo(f"{folder / 'table.html'}, {folder / 'table.csv'}")


def _job(cell: Cell, command: list[str]) -> Job:
    """One cell as a command; whoever runs it, and however often, there is one result."""
    from d2cp.executors import Job

    return Job(
        cell.name.replace("/", "-"),
        (*command, "--only", cell.name),
        lambda: cell.is_finished,
    )


def _plan(cells: list[Cell]) -> None:
    from d2cp.reproduce.calibration import measure
    from d2cp.reproduce.plan import told, work

    for one in work(cells):
        pace = measure(one.data.config) if one.left else None
        for line in told(one, pace):
            typer.echo(line)


def show(whole: dict[str, Any]) -> None:
    """Our figures beside the paper's, and how well the order of rows agrees."""
    from rich.console import Console
    from rich.table import Table

    from d2cp.reproduce.page import correlation, spread

    console = Console(highlight=False, width=max(Console().width, 110))
    for data, split in dict.fromkeys((f["data"], f["split"]) for f in whole["figures"]):
        own = [f for f in whole["figures"] if (f["data"], f["split"]) == (data, split)]
        console.print(  # not the table's title, which would be broken to the table's width
            f"{whole['title']}: {data}, {split}, scale {whole['scale']} "
            "(mean ± deviation over seeds, percent)",
            markup=False,
        )
        made = Table(box=None)
        made.add_column("row")
        beside = {f["metric"] for f in own if f["paper"] is not None}
        for metric in whole["metrics"]:
            made.add_column(metric["heading"], justify="right")
            if metric["key"] in beside:
                made.add_column("paper", justify="right")
        for row in dict.fromkeys(f["row"] for f in own):
            by = {f["metric"]: f for f in own if f["row"] == row}
            cells = []
            for metric in whole["metrics"]:
                f = by.get(metric["key"], {})
                cells.append(spread(f.get("mean"), f.get("std")))
                if metric["key"] in beside:
                    cells.append(spread(f.get("paper"), f.get("paper_std")))
            made.add_row(next(iter(by.values()))["name"], *cells)
        console.print(made)
    for order in whole["rank_correlation"]:
        console.print(correlation(order), markup=False)


def _scale(name: str) -> Scale:
    from d2cp.errors import ConfigError
    from d2cp.reproduce.scales import SCALES

    if name not in SCALES:
        raise ConfigError(f"--scale {name!r}", expected=" or ".join(SCALES))
    return name
