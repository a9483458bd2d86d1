"""A table of the paper from start to end: run what is missing, then write figures and page."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from d2cp import __version__
from d2cp.core.files import sweep, write_bytes, write_csv, write_json, write_text, writing_to
from d2cp.core.locks import held_in
from d2cp.data.place import Place
from d2cp.errors import ConfigError, RunError
from d2cp.reproduce.cells import Cell, DataSet, cells_of
from d2cp.reproduce.charts import chart
from d2cp.reproduce.outcome import HEADER, Found, csv_rows, outcome
from d2cp.reproduce.scales import Scale, settings
from d2cp.reproduce.strips import figures
from d2cp.reproduce.tables import Reproduction

Say = Callable[[str], None]


def data_sets(
    places: Sequence[Place],
    *,
    out: Path,
    scale: Scale,
    backbone: str | None = None,
    assignments: Sequence[str] = (),
    cache_dir: Path | None = None,
    masks: Path | None = None,
) -> list[DataSet]:
    made: dict[str, DataSet] = {}
    for place in places:
        table = place.table()
        if table.name in made:
            raise ConfigError(
                f"two data sets are called {table.name!r}",
                expected="a name of its own for every data set",
                remedy="rename a folder, or use two --out",
            )
        config = settings(scale, table, backbone=backbone, assignments=assignments)
        made[table.name] = DataSet(
            place=place,
            table=table,
            scale=scale,
            config=config,
            out=out,
            cache_dir=cache_dir,
            masks=masks,
            assignments=tuple(assignments),
        )
    return list(made.values())


def require_place(out: Path) -> None:
    """Refuse a folder that cannot be written in, or that holds something else."""
    if (out / "run.json").is_file():
        raise RunError(
            f"{out} is the folder of a run or a comparison",
            expected="a folder for reproduced tables, new or one of theirs",
            remedy="choose another --out",
        )
    with writing_to(out):
        out.mkdir(parents=True, exist_ok=True)
        if not os.access(out, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def possible(cells: Sequence[Cell], say: Say) -> list[Cell]:
    """Without the methods that cannot run on a data set; each is named once, with the reason. What
    has run could run."""
    reasons: dict[tuple[str, str], str] = {}
    for cell in cells:
        key = (cell.data.name, cell.row.key)
        if cell.row.kind == "method" and key not in reasons and not cell.is_finished:
            from d2cp.reproduce.by_method import why_not

            reasons[key] = why_not(cell.data, cell.row.key)
            if reasons[key]:
                say(f"{cell.row.key} is left out on {cell.data.name}: {reasons[key]}")
    return [c for c in cells if not reasons.get((c.data.name, c.row.key))]


def run_cells(cells: Sequence[Cell], say: Say, *, quiet: bool = False) -> list[Found]:
    """Every cell's content; those that are finished cost a look at their file."""
    found: list[Found] = []
    workshop = None
    for number, cell in enumerate(cells, 1):
        content = cell.finished()
        if content is None:
            if workshop is None:
                from d2cp.reproduce.run_cell import Workshop

                workshop = Workshop(quiet=quiet)
            content = workshop.run(cell)
            say(f"{number}/{len(cells)} {cell.name}: {_said(content)}; {content['seconds']:.0f} s")
        found.append((cell, content))
    return found


def write_table(
    wanted: Reproduction, found: Sequence[Found], folder: Path, about: dict[str, Any]
) -> dict[str, Any]:
    """table.json, table.csv, a chart of the first metric for every data set and split, a page."""
    from d2cp.reproduce.page import page

    pictures = [*_pictures(found, folder), *figures(found, folder)]
    made_by = {"version": __version__, "commit": _commits(found), "machine": _machines(found)}
    whole = outcome(wanted, found, {**about, **made_by})
    write_json(folder / "table.json", whole)
    write_csv(folder / "table.csv", HEADER, csv_rows(whole))
    metric = wanted.metrics[0]
    charts = {}
    for data, split in dict.fromkeys((f["data"], f["split"]) for f in whole["figures"]):
        own = [
            f
            for f in whole["figures"]
            if (f["data"], f["split"], f["metric"]) == (data, split, metric.key)
        ]
        drawn = chart(f"{wanted.title} · {data}, {split}", own, metric.heading, wanted.sweep)
        write_text(folder / f"{data}-{split}.svg", drawn.svg())
        write_bytes(folder / f"{data}-{split}.png", drawn.png())
        charts[data, split] = drawn
    write_text(folder / "table.html", page(whole, charts, pictures))
    return whole


def reproduce(
    wanted: Reproduction,
    data: list[DataSet],
    seeds: int,
    say: Say,
    *,
    quiet: bool = False,
) -> dict[str, Any]:
    """Run what is missing; the table goes to `table_folder`."""
    cells = possible(cells_of(wanted, data, seeds), say)
    found = run_cells(cells, say, quiet=quiet)
    about: dict[str, Any] = {
        "scale": data[0].scale,
        "seeds": seeds,
        "backbone": data[0].config.backbone,
        "set": list(data[0].assignments),
    }
    if columns := data[0].place.columns:
        about["column"] = [f"{role}={name}" for role, name in columns.items()]
    if data[0].masks is not None:
        about["masks"] = data[0].masks.name
    folder = table_folder(wanted, data)
    with held_in(folder, ".lock", wait=True):
        sweep(folder)  # what a killed writer left: the lock says that none is at work
        return write_table(wanted, found, folder, about)


def table_folder(wanted: Reproduction, data: Sequence[DataSet]) -> Path:
    """OUT/<scale>/<table>-<data>: a table of other data sets is another one."""
    names = "-".join([wanted.name, *(one.name for one in data)])
    return data[0].out / data[0].scale / names


def _commits(found: Sequence[Found]) -> str:
    """Of the code that ran the cells, where it was a checkout."""
    return ", ".join(sorted({content.get("commit", "") for _, content in found} - {""}))


def _machines(found: Sequence[Found]) -> str:
    """The kinds of machine that the cells ran on; older cells do not say, and ran here."""
    kinds = {content.get("machine") for _, content in found}
    if None in kinds:
        from d2cp.core.machine import machine_class

        kinds = {kind or machine_class() for kind in kinds}
    return "; ".join(sorted(str(kind) for kind in kinds))


def _pictures(found: Sequence[Found], folder: Path) -> list[tuple[str, Path]]:
    """Pictures of the cells, copied beside the table: their titles and where they are."""
    made = []
    for cell, content in found:
        for picture in content.get("pictures", []):
            copy = folder / f"{cell.data.name}-{cell.row.key}-{cell.seed}-{picture['file']}"
            write_bytes(copy, (cell.folder / picture["file"]).read_bytes())
            made.append((f"{cell.data.name}: {picture['title']}", copy))
    return made


def _said(content: dict[str, Any]) -> str:
    line: dict[str, Any] = content["lines"][0]
    shown = [f"{key} {100 * value:.1f}" for key, value in line["figures"].items()]
    return f"{line['split']} " + ", ".join(shown)
