"""Settings of a scan, and of what a run makes of its findings."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from d2cp.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class ScanSettings:
    """`[scan]` of a run. The defaults were settled on planted cues (`benchmarks/findings.py`)."""

    use: bool = False
    """Whether `discover` and `run` start from a scan: its findings become concepts, and those that
    are found give the pseudo attribute. Off: the paper's form. `d2cp scan` and `--findings` look
    either way."""
    concepts: int = 4
    """How many of the K concepts are the findings' scores, at most, nor more than a quarter of
    K. Read with `use`."""
    size: int = 144
    """Side of the squares the lenses look at; embedded digits keep their own."""
    fit_rows: int = 20_000
    """Training images the lenses learn from at most; every image is scored."""
    folds: int = 5
    """Folds of the cross-fit: no image is scored by a model that saw its label."""
    centres: int = 200
    """Entries of each patch dictionary."""
    permutations: int = 199
    """Times the labels are dealt anew for the p-value."""
    max_findings: int = 5
    """Findings looked for at most."""
    alpha: float = 0.01
    """A finding whose p-value is above this is not called found."""
    columns: tuple[str, ...] = ()
    """Further columns of the user's CSV, each a lens."""

    def __post_init__(self) -> None:
        for name, least in (
            ("concepts", 0),
            ("size", 16),
            ("fit_rows", 50),
            ("folds", 2),
            ("centres", 2),
            ("permutations", 19),
            ("max_findings", 1),
        ):
            if getattr(self, name) < least:
                raise ConfigError(f"scan.{name} = {getattr(self, name)}", expected=f">= {least}")
        if not 0 < self.alpha <= 1:
            raise ConfigError(f"scan.alpha = {self.alpha}", expected="a share in (0, 1]")

    def of_lenses(self) -> dict[str, Any]:
        """All that the findings themselves depend on."""
        return {k: v for k, v in asdict(self).items() if k not in ("use", "concepts")}


@dataclass(frozen=True, kw_only=True)
class ScanConfig(ScanSettings):
    """What a scan is handed: the settings and the run's seed."""

    seed: int = 0

    @classmethod
    def of(cls, settings: ScanSettings, seed: int) -> ScanConfig:
        return cls(**asdict(settings), seed=seed)
