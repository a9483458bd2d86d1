"""`d2cp compare DATA`: many methods on one backbone, one budget, one selection rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from d2cp.cli import options

if TYPE_CHECKING:
    from rich.table import Table as RichTable

RULES = ("val_true_groups", "val_pseudo_groups", "val_worst_class")


def compare(
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
    tier: Annotated[
        str, typer.Option(help="`prompts` over images, or `features` (frozen, computed once).")
    ] = "prompts",
    search: Annotated[
        int, typer.Option(min=0, help="Random draws from each method's space, on validation.")
    ] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Seeds that run at the same time.")] = 1,
    preset: options.Preset = "demo",
    backbone: options.Backbone = None,
    config: options.ConfigFile = None,
    set_: options.Set = None,
    format_: options.Format = None,
    train_limit: options.TrainLimit = None,
    cache: options.Cache = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Run methods x seeds. Killed anywhere, the same command goes on; finished cells are kept."""
    from d2cp.compare.run_comparison import run_comparison

    _one_of("--selection", selection, RULES)
    _one_of("--tier", tier, ("prompts", "features"))
    chosen = [*(set_ or []), f'debias.selection="{selection}"']
    whole = run_comparison(
        data,
        out=out,
        config=options.resolve(preset, config, chosen, 0, backbone, train_limit),
        names=methods,
        seeds=seeds,
        budget=budget,
        tier=tier,
        search=search,
        jobs=jobs,
        format=format_,
        cache_dir=cache,
        force=force,
        quiet=quiet,
    )
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


def _table(whole: dict[str, Any], split: str) -> RichTable:
    from rich.table import Table

    paper = whole["paper"] if split == "test" else None
    table = Table(
        title=f"{whole['data']}, {split}: {whole['selection']}, {whole['budget']} passes, "
        f"{whole['backbone']} (mean ± deviation over seeds; interval over test images, 95%)",
        box=None,
    )
    for title in ("method", "group labels"):
        table.add_column(title)
    for title in (
        *("worst group", "interval", "mean", "train-weighted", "D2CP minus it"),
        *("trained", "passes", "s"),
        *(["paper: worst", "mean"] if paper else []),
    ):
        table.add_column(title, justify="right")
    for line in whole["summary"][split]:
        cells = [
            line["method"],
            "+".join(line["group_labels"]) or "none",
            _percent(line["worst_group"], line["worst_group_std"]),
            "{:.1f} to {:.1f}".format(*(100 * v for v in line["interval"])),
            _percent(line["mean"], line["mean_std"]),
            _percent(line["train_weighted_mean"], None),
            _difference(whole["paired"][split].get(line["method"])),
            f"{line['trainable']:,}",
            f"{line['passes']:,}",
            f"{line['seconds']:.0f}",
        ]
        if paper:
            theirs = paper.get(line["method"], {})
            for key in ("worst_group", "mean"):
                value, std = theirs.get(key), theirs.get(f"{key}_std")
                cells.append("-" if value is None else _plain(value, std))
        table.add_row(*cells)
    return table


def _percent(value: float, std: float | None) -> str:
    return _plain(100 * value, None if std is None else 100 * std)


def _plain(value: float, std: float | None) -> str:
    return f"{value:.1f}" if std is None else f"{value:.1f} ± {std:.1f}"


def _difference(pair: dict[str, Any] | None) -> str:
    if pair is None:
        return ""
    text = f"{100 * pair['worst_group']:+.1f}"
    if pair["interval"] is None:
        return text
    return text + " [{:+.1f}, {:+.1f}]".format(*(100 * v for v in pair["interval"]))
