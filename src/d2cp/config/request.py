"""What a person asked for, before it is known which preset suits the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from d2cp.config.strict import merge, parse_assignment
from d2cp.config.whole import Config, load_config, read_settings


@dataclass(frozen=True, kw_only=True)
class Request:
    """`preset` None: let the data decide. The rest is laid over it, as `load_config` does."""

    preset: str | None = None
    file: Path | None = None
    assignments: Sequence[str] = ()
    overrides: Mapping[str, Any] = field(default_factory=dict)

    def config(self, preset: str) -> Config:
        return load_config(
            preset, file=self.file, assignments=self.assignments, overrides=self.overrides
        )

    def names(self, key: str) -> bool:
        """Whether a setting of the top level was asked for, not merely part of the preset."""
        values = dict(self.overrides)
        for text in self.assignments:
            values = merge(values, parse_assignment(text))
        if self.file is not None:
            values = merge(read_settings(self.file), values)
        return key in values
