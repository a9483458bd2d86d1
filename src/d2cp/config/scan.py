"""Settings of a scan."""

from __future__ import annotations

from dataclasses import dataclass

from d2cp.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class ScanConfig:
    """The defaults were settled on planted cues (`benchmarks/findings.py`)."""

    seed: int = 0
    size: int = 144
    """Side of the squares the lenses look at; embedded digits keep their own."""
    fit_rows: int = 20_000
    """Training images the lenses learn from at most; every image is scored."""
    folds: int = 5
    centres: int = 200
    """Entries of each patch dictionary."""
    permutations: int = 199
    max_findings: int = 5
    alpha: float = 0.01
    """A finding whose p-value is above this is not called found."""
    columns: tuple[str, ...] = ()
    """Further columns of the user's CSV, each a lens."""

    def __post_init__(self) -> None:
        for name, least in (
            ("size", 16),
            ("fit_rows", 50),
            ("folds", 2),
            ("centres", 2),
            ("permutations", 19),
            ("max_findings", 1),
        ):
            if getattr(self, name) < least:
                raise ConfigError(f"scan {name} = {getattr(self, name)}", expected=f">= {least}")
