"""Options that several commands share, and what they mean together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from d2cp.config import Config
    from d2cp.config.request import Request

EXECUTORS = ("local", "slurm", "ray")
Data = Annotated[
    str,
    typer.Argument(
        help="A folder or file with a data set, or an embedded one: "
        "cmnist, cmnist10, digits-unbiased."
    ),
]
Out = Annotated[Path, typer.Option("--out", "-o", help="Run directory; an existing one goes on.")]
Preset = Annotated[str, typer.Option(help="A named configuration; `d2cp presets` lists them.")]
ChosenPreset = Annotated[
    str | None,
    typer.Option(
        "--preset",
        help="A named configuration (`d2cp presets` lists them); without one the images' size and "
        "the machine decide.",
    ),
]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", help="A TOML file laid over the preset.")
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", help="One setting, as stage.key=value; may be given again."),
]
Seed = Annotated[
    int,
    typer.Option(
        help="Everything random in mining and training follows from it; a split that has to be "
        "drawn does not, so that seeds share their test images."
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON, with documented, stable keys.")
]
Backbone = Annotated[
    str | None,
    typer.Option(help="`embedded`, a local folder, or a name on the Hugging Face hub."),
]
Format = Annotated[
    str | None, typer.Option("--format", help="Layout of DATA when it is not recognised by itself.")
]
Column = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="ROLE=NAME",
        help="A column of DATA by its role: filename=…, y=…, split=… or a=…; may be repeated.",
    ),
]
Images = Annotated[
    Path | None,
    typer.Option(
        help="Folder of the images, if not beside the metadata; links and paths may lead anywhere "
        "below it."
    ),
]
Cache = Annotated[Path | None, typer.Option(help="Folder for decoded images.")]
Force = Annotated[
    bool, typer.Option("--force", help="Go on in a run started with other settings; redo stages.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results only.")]
Device = Annotated[
    str | None,
    typer.Option(help="`cpu`, `cuda`, `cuda:1` or `mps`; by default what the machine has."),
]
Precision = Annotated[
    str | None,
    typer.Option(help="Mixed precision of the training steps: `no`, `fp16` or `bf16`."),
]
TrainLimit = Annotated[
    int | None, typer.Option(help="Use at most so many training images (0: all).")
]
Executor = Annotated[
    str, typer.Option(help="Where it runs: on this machine (`local`), `slurm` or `ray`.")
]
Jobs = Annotated[
    int, typer.Option(min=0, help="So many at the same time. Default: 1, or all on a cluster.")
]
Queue = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE",
        help="What a job asks of the cluster, in the words of submitit or Ray, such as "
        "slurm_partition=gpu or num_gpus=1; may be repeated.",
    ),
]
PrintCommands = Annotated[
    bool, typer.Option("--print-commands", help="Print the jobs as commands; run nothing.")
]
Corrections = Annotated[
    Path | None,
    typer.Option(help="A person's corrections, as saved by the report; used from mining on."),
]

Findings = Annotated[
    str,
    typer.Option(
        help="Ranks of a scan's findings, such as 1,2: their values are the pseudo attribute, and "
        "no concept model is trained."
    ),
]


def ranks(text: str) -> tuple[int, ...]:
    """The ranks that `--findings 1,2` names."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if (text and not words) or not all(word.isdecimal() and len(word) < 6 for word in words):
        raise typer.BadParameter(
            f"{text[:60]!r} is not a list such as 1,2", param_hint="--findings"
        )
    return tuple(dict.fromkeys(int(word) for word in words))


def columns(assignments: list[str] | None) -> dict[str, str]:
    """Column names by their role, from `--column ROLE=NAME`."""
    return assigned("--column", assignments, "ROLE=NAME")


def assigned(option: str, assignments: list[str] | None, form: str = "KEY=VALUE") -> dict[str, str]:
    """What an option says that may be repeated."""
    found = {}
    for assignment in assignments or []:
        name, equals, value = assignment.partition("=")
        if not equals or not value:
            raise typer.BadParameter(f"{assignment!r} is not {form}", param_hint=option)
        found[name.strip()] = value
    return found


def require_executor(name: str) -> None:
    from d2cp.errors import ConfigError

    if name not in EXECUTORS:
        raise ConfigError(f"--executor {name!r}", expected="one of " + ", ".join(EXECUTORS))


def close(out: Path, quiet: bool, as_json: bool = False) -> None:
    """What a run says last: its figures, and the next commands to type."""
    from rich.console import Console

    from d2cp.cli.show import show
    from d2cp.core.processes import is_main
    from d2cp.core.run_directory import RunDirectory
    from d2cp.report.steps import next_steps

    if not is_main():
        return
    show(out, as_json)
    if not quiet and not as_json:
        console = Console(highlight=False)
        for line in next_steps(RunDirectory.open(out)):
            console.print(line, markup=False, soft_wrap=True)


def resolve(
    preset: str,
    file: Path | None,
    assignments: list[str] | None,
    seed: int,
    backbone: str | None = None,
    train_limit: int | None = None,
    precision: str | None = None,
) -> Config:
    """The configuration that the shared options describe."""
    return request(preset, file, assignments, seed, backbone, train_limit, precision).config(preset)


def request(
    preset: str | None,
    file: Path | None,
    assignments: list[str] | None,
    seed: int,
    backbone: str | None = None,
    train_limit: int | None = None,
    precision: str | None = None,
) -> Request:
    """What the shared options ask for; the data may have to choose the preset."""
    from d2cp.config.request import Request
    from d2cp.errors import ConfigError

    overrides: dict[str, Any] = {"seed": seed}
    if backbone is not None:
        overrides["backbone"] = backbone
    if train_limit is not None:
        overrides["train_limit"] = train_limit
    if precision is not None:
        if precision not in ("no", "fp16", "bf16"):
            raise ConfigError(f"--precision {precision}", expected="no, fp16 or bf16")
        overrides |= {stage: {"precision": precision} for stage in ("disentangle", "debias")}
    asked = Request(preset=preset, file=file, assignments=assignments or (), overrides=overrides)
    asked.config(preset or "demo")  # a wrong key is told before any data is read
    return asked
