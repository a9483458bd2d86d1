"""What `--scale paper` and `--scale here` mean: the preset that a data set's cells are run with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from d2cp.config import Config, load_config
from d2cp.data.table import Table
from d2cp.errors import ConfigError
from d2cp.pipeline.preset_choice import SMALL, usual_side

Scale = Literal["paper", "here"]
SCALES: tuple[Scale, ...] = ("paper", "here")
BENCHMARKS = ("waterbirds", "celeba", "metashift", "cmnist")


def benchmark(table: Table) -> str:
    """Which of the paper's data sets this is: by its published group counts, not by its form."""
    expected, found = table.expected_counts or {}, table.counts()
    whole = bool(expected) and all(found.get(name) == n for name, n in expected.items())
    return table.name if whole and table.name in BENCHMARKS else ""


def settings(
    scale: Scale,
    table: Table,
    *,
    backbone: str | None = None,
    assignments: Sequence[str] = (),
) -> Config:
    """The configuration of a data set's cells, seed 0; `assignments` are a person's own."""
    overrides: dict[str, Any] = {} if backbone is None else {"backbone": backbone}
    return load_config(_preset(scale, table), assignments=assignments, overrides=overrides)


def _preset(scale: Scale, table: Table) -> str:
    if scale == "here":
        side = usual_side(table)
        return "here-digits" if side is not None and side <= SMALL else "here-photos"
    name = benchmark(table)
    if not name:
        raise ConfigError(
            f"--scale paper on {table.name!r}",
            expected=f"a data set of the paper with its published counts: {', '.join(BENCHMARKS)}",
            remedy="use --scale here, or see `d2cp check` for the counts that were found",
        )
    return f"paper-{name}"
