"""`d2cp demo`: the whole method on coloured digits, with nothing to download."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from d2cp.cli import options


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Run directory.")] = Path("demo-run"),
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Coloured digits, embedded backbone: ERM beside D2CP, no group label anywhere."""
    from d2cp.api import run as run_all

    run_all("cmnist", out=out, config=options.resolve("demo", None, None, seed), quiet=quiet)
    options.close(out, quiet)
