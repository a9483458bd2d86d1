"""Where a data set lies and how it is to be read: what a command line says, and a run records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from d2cp.data.coloured import EMBEDDED_SETS
from d2cp.data.open_table import load_table
from d2cp.data.table import Table
from d2cp.errors import DataError


@dataclass(frozen=True, kw_only=True)
class Place:
    """`data` is a path or the name of an embedded set; the rest is as in `load_table`."""

    data: str
    format: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    images: str | None = None

    @classmethod
    def of(
        cls,
        data: str | Path,
        format: str | None = None,
        columns: Mapping[str, str] | None = None,
        images: str | Path | None = None,
    ) -> Self:
        return cls(
            data=str(data),
            format=format,
            columns=dict(columns or {}),
            images=None if images is None else str(images),
        )

    def table(self, seed: int = 0) -> Table:
        return load_table(
            self.data, format=self.format, columns=self.columns, images=self.images, seed=seed
        )

    def record(self) -> dict[str, Any]:
        """What `from_record` needs, with absolute paths, so that it holds from any folder."""
        found: dict[str, Any] = {}
        if self.data not in EMBEDDED_SETS or self.format is not None:
            found["path"] = str(Path(self.data).expanduser().resolve())
        if self.format is not None:
            found["format"] = self.format
        if self.columns:
            found["columns"] = dict(self.columns)
        if self.images is not None:
            found["images"] = str(Path(self.images).expanduser().resolve())
        return found

    @classmethod
    def from_record(cls, data: Mapping[str, Any]) -> Self:
        """`data` is a run's record: name, and what `record` wrote."""
        where = data.get("path") or data.get("name")
        if not where:
            raise DataError("the run does not say where its data set lies")
        return cls.of(
            where,
            data.get("format"),
            data.get("columns"),
            data.get("images"),
        )

    def options(self) -> list[str]:
        """The words of a command line that say how to read, after the data set's own."""
        words = [] if self.format is None else ["--format", self.format]
        for role, name in self.columns.items():
            words += ["--column", f"{role}={name}"]
        return words + ([] if self.images is None else ["--images", self.images])
