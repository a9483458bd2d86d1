"""`scan`, `discover` and `run`: what the commands of these names do, for Python."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from d2cp.config import Config
from d2cp.config.request import Request
from d2cp.core.files import write_bytes
from d2cp.data.place import Place
from d2cp.data.table import Table
from d2cp.errors import ConfigError
from d2cp.report.summary import summarise

if TYPE_CHECKING:
    from d2cp.pipeline.discovered import Discovery
    from d2cp.scan.finding import Scan
    from d2cp.scan.phrases import Phrases


def scan(
    data: Table | str | Path,
    *,
    out: Path | str,
    config: Config | Request | None = None,
    seed: int | None = None,
    suspects: Sequence[str] = (),
    words: Path | str | None = None,
    backbone: str | None = None,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    images: Path | str | None = None,
    scores_out: Path | None = None,
    cache_dir: Path | None = None,
    force: bool = False,
    quiet: bool = False,
) -> Scan:
    """The lenses alone, on all images unless `config` asks for fewer; `run` and `discover` in the
    same folder start from it. `suspects` are further columns of the CSV. `words` is a file of
    phrases: those whose text goes with a finding, by the CLIP `backbone`. A folder that was started
    keeps its settings."""
    from d2cp.pipeline.opening import open_run
    from d2cp.pipeline.preset_choice import as_started
    from d2cp.pipeline.scanning import scan_stage
    from d2cp.scan.scan_files import SCORES

    phrases = _phrases(words, backbone)
    place = None if isinstance(data, Table) else Place.of(data, format, columns, images)
    table = as_table(data, format, columns, images)
    whole = as_started(out) if config is None else None
    if whole is None:
        asked = config or Request()
        whole = settled(asked, table, out, quiet)
        if isinstance(asked, Request):
            # A preset's limits keep training short; a scan looks at all images unless told not to.
            limits = ("train_limit", "val_limit", "test_limit")
            unasked: dict[str, Any] = {name: 0 for name in limits if not asked.names(name)}
            whole = dataclasses.replace(whole, **unasked)
    if seed is not None:
        whole = dataclasses.replace(whole, seed=seed)
    if suspects:
        lenses = dataclasses.replace(whole.scan, columns=tuple(suspects))
        whole = dataclasses.replace(whole, scan=lenses)
    with open_run(
        table,
        out,
        whole,
        place=place,
        cache_dir=cache_dir,
        quiet=quiet,
        force=force,
        splits=("train",),
    ) as context:
        if scores_out is not None:
            context.run.require_not_own(scores_out)
        found = scan_stage(context, phrases)
        if scores_out is not None:
            write_bytes(scores_out, (context.run.path / "scan" / SCORES).read_bytes())
    return found


def _phrases(words: Path | str | None, backbone: str | None) -> Phrases | None:
    """Opened before the data set: what is wrong with either is told at once."""
    if words is not None and backbone is not None:
        from d2cp.scan.phrases import open_phrases

        return open_phrases(words, backbone)
    if words is not None or backbone is not None:
        given, absent = ("--words", "--backbone") if backbone is None else ("--backbone", "--words")
        raise ConfigError(
            f"{given} without {absent}",
            expected="both: a file of words, and the CLIP that reads them",
            remedy=f"add {absent}, or leave out {given}",
        )
    return None


def discover(
    data: Table | str | Path,
    *,
    out: Path | str,
    preset: str | None = None,
    seed: int = 0,
    config: Config | Request | None = None,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    images: Path | str | None = None,
    corrections: Path | None = None,
    findings: Sequence[int] = (),
    labels_out: Path | None = None,
    cache_dir: Path | None = None,
    device: str | None = None,
    force: bool = False,
    quiet: bool = False,
) -> Discovery:
    """Stage 1 alone: the verdict, its pictures and a pseudo attribute for every image. Without a
    preset, the images and the machine decide. `findings` are ranks of the scan's: their values
    make the pseudo attribute and no concept model is trained."""
    from d2cp.core.device import use_device
    from d2cp.core.processes import is_main
    from d2cp.pipeline import discovery as stages
    from d2cp.pipeline.opening import open_run

    use_device(device)
    quiet = quiet or not is_main()
    place = None if isinstance(data, Table) else Place.of(data, format, columns, images)
    table = as_table(data, format, columns, images)
    config = settled(config or Request(preset=preset, overrides={"seed": seed}), table, out, quiet)
    with open_run(
        table,
        out,
        config,
        place=place,
        cache_dir=cache_dir,
        quiet=quiet,
        force=force,
    ) as context:
        if labels_out is not None:
            context.run.require_not_own(labels_out)
        found = stages.discover(context, corrections, findings)
        if labels_out is not None and is_main():
            write_bytes(labels_out, (context.run.path / "mine" / "pseudo.csv").read_bytes())
    return found


def run(
    data: Table | str | Path,
    *,
    out: Path | str,
    preset: str | None = None,
    seed: int = 0,
    config: Config | Request | None = None,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    images: Path | str | None = None,
    corrections: Path | None = None,
    findings: Sequence[int] = (),
    control: bool = True,
    report: bool = True,
    cache_dir: Path | None = None,
    tensorboard: bool = False,
    device: str | None = None,
    force: bool = False,
    quiet: bool = False,
) -> dict[str, Any]:
    """The whole method; returns what `d2cp show RUN --json` prints. Without a preset, the images
    and the machine decide. `findings` is as in `discover`."""
    from d2cp.core.device import use_device
    from d2cp.core.processes import is_main
    from d2cp.pipeline.all_stages import run_stages
    from d2cp.pipeline.opening import open_run
    from d2cp.report.build import write_report

    use_device(device)
    quiet = quiet or not is_main()
    place = None if isinstance(data, Table) else Place.of(data, format, columns, images)
    table = as_table(data, format, columns, images)
    config = settled(config or Request(preset=preset, overrides={"seed": seed}), table, out, quiet)
    with open_run(
        table,
        out,
        config,
        place=place,
        cache_dir=cache_dir,
        quiet=quiet,
        force=force,
        tensorboard=tensorboard,
    ) as context:
        run_stages(context, corrections=corrections, findings=findings, control=control)
        if report and is_main():
            context.say(f"report: {write_report(context.run, table=context.table)}")
        return summarise(context.run)


def as_table(
    data: Table | str | Path,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    images: Path | str | None = None,
) -> Table:
    return data if isinstance(data, Table) else Place.of(data, format, columns, images).table()


def settled(config: Config | Request, table: Table, out: Path | str, quiet: bool) -> Config:
    """A configuration as it is; a request with the preset that suits the data, which is said."""
    if isinstance(config, Config):
        return config
    from rich.console import Console

    from d2cp.pipeline.preset_choice import settle

    made, said = settle(config, table, out)
    if said and not quiet:
        Console(stderr=True).print(said, markup=False, highlight=False, soft_wrap=True)
    return made
