"""`d2cp compare DATA`: many methods on one backbone, one budget, one selection rule."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from d2cp.cli import options

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from d2cp.compare.parts import Per

ELSEWHERE = ("executor", "queue", "per", "jobs", "print_commands", "only", "as_json")
RULES = ("val_true_groups", "val_pseudo_groups", "val_worst_class")


def compare(
    context: typer.Context,
    data: options.Data,
    out: options.Out,
    methods: Annotated[
        str, typer.Option(help="`all`, or names with commas between; `d2cp methods` lists them.")
    ] = "all",
    seeds: Annotated[int, typer.Option(min=1, help="Seeds 0 ... N-1.")] = 3,
    selection: Annotated[
        str, typer.Option(help="What picks a state on validation: " + ", ".join(RULES) + ".")
    ] = "val_pseudo_groups",
    budget: Annotated[
        int, typer.Option(min=1, help="Training passes of an image through the network, a method.")
    ] = 24000,
    epochs: Annotated[
        int,
        typer.Option(
            min=0, help="Equal epochs instead: so many in every training, whatever a step costs."
        ),
    ] = 0,
    tier: Annotated[
        str, typer.Option(help="`prompts` over images, or `features` (frozen, computed once).")
    ] = "prompts",
    groups: Annotated[
        str,
        typer.Option(help="Methods that ask for groups get the `true` ones, `mined` ones, `both`."),
    ] = "true",
    search: Annotated[
        int, typer.Option(min=0, help="Random draws from each method's space, on validation.")
    ] = 0,
    executor: options.Executor = "local",
    jobs: options.Jobs = 0,
    per: Annotated[
        str,
        typer.Option(help="A job is a `seed` (its methods share what is made once) or a `cell`."),
    ] = "seed",
    queue: options.Queue = None,
    print_commands: options.PrintCommands = False,
    only: Annotated[
        str | None,
        typer.Option(metavar="PART", help="Run one job: a seed (`0`) or a cell (`erm-0`)."),
    ] = None,
    preset: options.Preset = "demo",
    backbone: options.Backbone = None,
    config: options.ConfigFile = None,
    set_: options.Set = None,
    format_: options.Format = None,
    column: options.Column = None,
    images: options.Images = None,
    train_limit: options.TrainLimit = None,
    cache: options.Cache = None,
    device: options.Device = None,
    precision: options.Precision = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Run methods x seeds. Killed anywhere, the same command goes on; finished cells are kept."""
    from d2cp.cli.again import PROGRAM, same_command
    from d2cp.compare.run_comparison import Elsewhere, run_comparison
    from d2cp.executors import Away

    options.require_executor(executor)
    _one_of("--per", per, ("seed", "cell"))
    _one_of("--selection", selection, RULES)
    _one_of("--tier", tier, ("prompts", "features"))
    _one_of("--groups", groups, ("true", "mined", "both"))
    asked_for = (f'debias.selection="{selection}"', f'debias.tier="{tier}"')
    chosen = [*(set_ or []), *asked_for]
    command = same_command(context, "compare", without=ELSEWHERE)
    elsewhere = None
    if print_commands or (only is None and (executor != "local" or jobs > 1)):
        asked = options.assigned("--queue", queue)
        away = Away(executor=executor, at_once=jobs, options=asked)
        elsewhere = Elsewhere(
            away=None if print_commands else away,
            command=[*(("d2cp",) if print_commands else PROGRAM), *command],
            per=cast("Per", per),
        )
    whole = run_comparison(
        data,
        out=out,
        config=options.resolve(preset, config, chosen, 0, backbone, train_limit, precision),
        names=methods,
        seeds=seeds,
        budget=budget,
        epochs=epochs,
        tier=tier,
        groups=groups,
        search=search,
        elsewhere=elsewhere,
        only=only,
        format=format_,
        columns=options.columns(column),
        images=images,
        cache_dir=cache,
        device=device,
        force=force,
        quiet=quiet,
        command=shlex.join(["d2cp", *command]),
    )
    if print_commands:
        for words in [*whole["commands"], ["d2cp", *command]]:  # the last one writes the tables
            typer.echo(shlex.join(words))
        return
    if only is not None:
        return
    if as_json:
        typer.echo(json.dumps(whole, indent=2, ensure_ascii=False))
        return
    show_comparison(whole)
    typer.echo(f"{out / 'compare.csv'}, {out / 'compare.json'}")


def _one_of(option: str, value: str, known: tuple[str, ...]) -> None:
    from d2cp.errors import ConfigError

    if value not in known:
        raise ConfigError(f"{option} {value!r}", expected="one of " + ", ".join(known))


def show_comparison(whole: dict[str, Any]) -> None:
    """One table a test split; worst-group figures are means over seeds, in percent."""
    from rich.console import Console

    console = Console(highlight=False, width=max(Console().width, 150))
    for split in whole["summary"]:
        console.print(_table(whole, split))
    for name, reason in whole.get("skipped", {}).items():
        console.print(f"{name} is left out: {reason}", markup=False)


def _budget(whole: dict[str, Any]) -> str:
    if whole.get("epochs"):
        return f"{whole['epochs']} epochs a training"
    return f"{whole['budget']} passes"


def _table(whole: dict[str, Any], split: str) -> RichTable:
    from rich.table import Table

    from d2cp.cli.result_tables import two_lines
    from d2cp.compare.comparison import labels_used
    from d2cp.evaluate.columns import COLUMNS, COSTS, WORST, groupings

    lines = whole["summary"][split]
    paper = whole["paper"] if split == "test" else None
    published = [c for c in COLUMNS if paper and any(c.key in one for one in paper.values())]
    table = Table(
        title=f"{whole['data']}, {split}: {whole['selection']}, {_budget(whole)}, "
        f"{whole['backbone']} (mean ± deviation over seeds; interval over test images, 95%)",
        box=None,
    )
    for title in ("method", "group labels"):
        table.add_column(title)
    titles = [two_lines(column.titled(groupings(lines))) for column in COLUMNS]
    for title in (
        *(titles[0], "interval", *titles[1:], "D2CP minus it"),
        *(cost.heading for cost in COSTS),
        *(f"paper: {column.heading}" for column in published),
    ):
        table.add_column(title, justify="right")
    for line in lines:
        cells = [line["method"], labels_used(line)]
        for column in COLUMNS:
            cells.append(_percent(line[column.key], line[f"{column.key}_std"]))
            if column is WORST:
                low, high = line["intervals"][column.key]
                cells.append(f"{100 * low:.1f} to {100 * high:.1f}")
        cells.append(difference(whole["paired"][split].get(line["method"])))
        cells += [cost.text(line[cost.key]) for cost in COSTS]
        theirs = (paper or {}).get(line["method"], {})
        for column in published:
            value, std = theirs.get(column.key), theirs.get(f"{column.key}_std")
            cells.append("-" if value is None else _plain(value, std))
        table.add_row(*cells)
    return table


def _percent(value: float, std: float | None) -> str:
    return _plain(100 * value, None if std is None else 100 * std)


def _plain(value: float, std: float | None) -> str:
    return f"{value:.1f}" if std is None else f"{value:.1f} ± {std:.1f}"


def difference(pair: Mapping[str, Any] | None) -> str:
    """D2CP minus a method in points of the worst group, with its interval."""
    if pair is None:
        return ""
    text = f"{100 * pair['worst_group']:+.1f}"
    if pair["interval"] is None:
        return text
    return text + " [{:+.1f}, {:+.1f}]".format(*(100 * v for v in pair["interval"]))
