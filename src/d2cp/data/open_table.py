"""A name or a path → a table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from d2cp.core.memory import hand_back
from d2cp.data.adapters import ADAPTERS
from d2cp.data.assemble import Options
from d2cp.data.coloured import EMBEDDED_SETS, load_embedded
from d2cp.data.fetch.catalogue import CATALOGUE
from d2cp.data.splits import FRACTIONS
from d2cp.data.table import Table
from d2cp.errors import DataError


def load_table(
    path: str | Path,
    *,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    images: str | Path | None = None,
    seed: int = 0,
    fractions: tuple[float, float, float] = FRACTIONS,
    limit: int | Mapping[str, int] | None = None,
) -> Table:
    """The data set at `path`, or an embedded one by its name (`./cmnist` is a path, `cmnist` a
    name). `columns` maps filename, y, split, a to a file's own column names; `images` is the
    folder of the images where it is not beside the metadata; `limit` keeps that many rows of each
    split (see Table.subsample)."""
    if format is None and str(path) in EMBEDDED_SETS:
        table = load_embedded(str(path))
    else:
        table = _load_path(Path(path), format, columns, images, seed, fractions)
        hand_back()
    return table if limit is None else table.subsample(limit, seed)


def _load_path(
    path: Path,
    format: str | None,
    columns: Mapping[str, str] | None,
    images: str | Path | None,
    seed: int,
    fractions: tuple[float, float, float],
) -> Table:
    path = path.expanduser()
    if format is not None and format not in ADAPTERS:
        raise DataError(f"no format is called {format!r}", expected=", ".join(ADAPTERS))
    try:
        if not path.exists():
            raise DataError(
                f"{path} does not exist",
                expected=f"a folder, a metadata CSV, or one of {', '.join(EMBEDDED_SETS)}",
                remedy=f"d2cp fetch {path} DIR brings it, where there is a network; then pass DIR"
                if str(path) in CATALOGUE
                else "",
            )
        name = format or next((n for n, a in ADAPTERS.items() if a.recognise(path)), None)
        if name is None:
            raise DataError(
                f"{path} is not a data set in a known layout; it holds {_listing(path)}",
                expected="\n" + "\n\n".join(f"[{n}]\n{a.layout}" for n, a in ADAPTERS.items()),
                remedy="arrange the files in one of these ways",
            )
        if format is not None and not ADAPTERS[format].recognise(path):
            raise DataError(
                f"{path} is not in the layout {format!r}; it holds {_listing(path)}",
                expected=f"\n{ADAPTERS[format].layout}",
            )
        options = Options(
            columns=dict(columns or {}),
            images=None if images is None else Path(images).expanduser(),
            seed=seed,
            fractions=fractions,
            named=format is not None,
        )
        return ADAPTERS[name].load(path, options)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def _listing(path: Path) -> str:
    if path.is_file():
        return f"one file of {path.stat().st_size} bytes"
    names = sorted(item.name + ("/" if item.is_dir() else "") for item in path.iterdir())
    if not names:
        return "nothing"
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
