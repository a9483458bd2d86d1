"""`d2cp cache`: the decoded images that lie on this machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from d2cp.cli import options

if TYPE_CHECKING:
    from d2cp.data.cache_room import Cached


def cache(
    action: Annotated[
        str, typer.Argument(help="`show`, or `clear`: remove all that no run is reading.")
    ] = "show",
    folder: Annotated[
        Path | None, typer.Option("--cache", help="Folder for decoded images.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Show the cache of decoded images, or clear it. $D2CP_CACHE_GB limits its size."""
    from d2cp.data.cache import default_cache_dir
    from d2cp.data.cache_room import entries, limit_bytes, remove
    from d2cp.errors import ConfigError

    if action not in ("show", "clear"):
        raise ConfigError(f"d2cp cache {action}", expected="show or clear")
    place, limit = folder or default_cache_dir(), limit_bytes()
    lying = entries(place)
    if action == "clear":
        removed = [entry for entry in lying if remove(entry)]
        kept = len(lying) - len(removed)
        freed = sum(entry.size for entry in removed)
        if as_json:
            typer.echo(json.dumps({"removed": len(removed), "kept": kept, "bytes": freed}))
            return
        in_use = f"; {kept} in use, kept" if kept else ""
        typer.echo(f"removed {len(removed)} of {len(lying)} ({_gigabytes(freed)}){in_use}")
        return
    if as_json:
        found = [
            {
                "path": str(e.path),
                "bytes": e.size,
                "images": e.images,
                "side": e.side,
                "used": e.used,
            }
            for e in lying
        ]
        whole = {"folder": str(place), "limit_bytes": limit, "entries": found}
        typer.echo(json.dumps(whole, indent=2, ensure_ascii=False))
        return
    _show(place, lying, limit)


def _show(place: Path, lying: list[Cached], limit: int) -> None:
    from datetime import datetime

    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, soft_wrap=True)
    if lying:
        table = Table(box=None)
        for title in ("images", "side", "size", "last used", "folder"):
            table.add_column(title, justify="left" if title == "folder" else "right")
        for e in reversed(lying):
            when = datetime.fromtimestamp(e.used).strftime("%Y-%m-%d %H:%M")
            name = f"{e.path.parent.name}/{e.path.name}"
            table.add_row(f"{e.images:,}", str(e.side), _gigabytes(e.size), when, name)
        console.print(table)
    total = sum(e.size for e in lying)
    bound = f"of at most {_gigabytes(limit)}" if limit else "no limit"
    console.print(f"{place}: {_gigabytes(total)}, {bound}", markup=False)


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.2f} GB" if size >= 1e7 else f"{size / 1e6:.2f} MB"
