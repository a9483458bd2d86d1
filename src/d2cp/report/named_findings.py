"""Which findings a run was told to use, as an option of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def named_findings(discover: Mapping[str, Any]) -> tuple[str, ...]:
    """`discover` is mine/summary.json. Where the run chose by itself, it was told nothing."""
    if "findings" not in discover or "mined" in discover:
        return ()
    return ("--findings", ",".join(str(rank) for rank in discover["findings"]))
