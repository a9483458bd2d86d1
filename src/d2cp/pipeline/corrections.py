"""What a person corrected in a report: a small JSON file that mining takes into account.

{"schema": 1, "data": fingerprint, "concepts_are_class": [k, ...], "flip": {image id: value, ...}}
and, where a scan has findings, either of
"findings_are_class": [rank, ...], "finding_flip": {rank: {image id: value, ...}}
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2cp.core.files import bounded_text
from d2cp.core.text import repeated
from d2cp.errors import D2CPError

SCHEMA = 1
MANY = 10_000  # concepts or values: no run has so many
MAX_BYTES = 256 * 2**20
_KEYS = ("schema", "data", "concepts_are_class", "flip")
_OPTIONAL = ("findings_are_class", "finding_flip")
_RANK = re.compile("[1-9][0-9]{0,4}")  # one way of writing each: "01" would be another 1
_SOURCE = "a file saved from the report of a run on this data set"


class CorrectionsError(D2CPError):
    """A corrections file that is damaged, or that belongs to another data set."""


@dataclass(frozen=True, kw_only=True)
class Corrections:
    """Concepts and findings that are the class itself (never used), and images with another value:
    of the pseudo attribute (`flip`), or of a finding."""

    data: str
    concepts_are_class: tuple[int, ...] = ()
    flip: Mapping[str, int] = field(default_factory=dict)
    findings_are_class: tuple[int, ...] = ()
    finding_flip: Mapping[int, Mapping[str, int]] = field(default_factory=dict)

    @property
    def flips(self) -> int:
        return len(self.flip) + sum(len(flips) for flips in self.finding_flip.values())

    def check(
        self, *, fingerprint: str, ids: Sequence[str], concepts: int, ranks: Collection[int] = ()
    ) -> None:
        """Refuse what does not fit a data set with these images, K `concepts` and findings of
        these `ranks`."""
        if self.data != fingerprint:
            raise CorrectionsError(
                f"the corrections belong to another data set (fingerprint {self.data})",
                expected=f"fingerprint {fingerprint}",
                remedy="open the report of a run on this data set and save them again",
            )
        outside = [k for k in self.concepts_are_class if k >= concepts]
        if outside:
            raise CorrectionsError(
                f"the corrections name concept {outside[0]}",
                expected=f"a concept from 0 to {concepts - 1}",
                remedy="use a file saved from a run with the same number of concepts",
            )
        if len(self.concepts_are_class) == concepts:
            raise CorrectionsError(
                f"the corrections say of all {concepts} concepts that they are the class",
                expected="a concept that is left to be mined",
                remedy="leave one out, or train without d2cp: there is no shortcut to remove",
            )
        absent = [r for r in (*self.findings_are_class, *self.finding_flip) if r not in ranks]
        if absent:
            there = ", ".join(str(r) for r in ranks)
            raise CorrectionsError(
                f"the corrections name finding {absent[0]}",
                expected=f"one of {there}" if there else "a run that starts from a scan",
                remedy="use a file saved from the report of this run",
            )
        named = set(self.flip).union(*self.finding_flip.values())
        unknown = sorted(named.difference(ids))
        if unknown:
            more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
            raise CorrectionsError(
                f"the corrections name an image that is not there: {unknown[0]!r}{more}",
                expected="image ids as in the run's data/table.csv",
                remedy="use a file saved from the report of this data set, or remove these lines",
            )

    def flipped(
        self, pseudo: NDArray[np.int64], ids: Sequence[str], values: int
    ) -> NDArray[np.int64]:
        """The pseudo attribute, one of `values`, with a person's in the rows they named."""
        for image, value in self.flip.items():
            if value >= values:
                raise CorrectionsError(
                    f"the corrections give {image!r} the value {value}",
                    expected=f"a value from 0 to {values - 1}, as many as were mined",
                    remedy="correct the number in the file",
                )
        corrected = pseudo.copy()
        for row, image in enumerate(ids if self.flip else ()):
            if image in self.flip:
                corrected[row] = self.flip[image]
        return corrected


def load_corrections(path: Path | str) -> Corrections:
    """Read and check the file's form; `Corrections.check` compares it with a data set."""
    path = Path(path)
    try:
        raw = json.loads(bounded_text(path, MAX_BYTES), object_pairs_hook=_no_duplicates)
    except OSError as error:
        raise CorrectionsError(
            f"cannot read {path}: {error.strerror}", expected=_SOURCE, remedy="check the path"
        ) from error
    except (ValueError, RecursionError) as error:  # bad UTF-8 or JSON, a key twice, nested deeply
        raise CorrectionsError(f"{path}: {error}", expected=_SOURCE) from error
    if not isinstance(raw, dict) or set(raw).difference(_OPTIONAL) != set(_KEYS):
        found = ", ".join(sorted(raw)) if isinstance(raw, dict) else type(raw).__name__
        raise CorrectionsError(f"{path} holds {found}", expected=f"the keys {', '.join(_KEYS)}")
    if raw["schema"] != SCHEMA or isinstance(raw["schema"], bool):
        raise CorrectionsError(
            f"{path} has schema {_short(raw['schema'])}",
            expected=f"schema {SCHEMA}",
            remedy="save the corrections again from a report made with this version",
        )
    if not isinstance(raw["data"], str):
        raise CorrectionsError(
            f"{path}: data = {_short(raw['data'])}", expected="a fingerprint (text)"
        )
    concepts, findings = raw["concepts_are_class"], raw.get("findings_are_class", [])
    for name, listed in (("concepts_are_class", concepts), ("findings_are_class", findings)):
        if not isinstance(listed, list) or not all(_is_index(k) for k in listed):
            raise CorrectionsError(
                f"{path}: {name} = {_short(listed)}",
                expected=f"a list of {name.split('_')[0][:-1]} numbers",
            )
    of_findings = raw.get("finding_flip", {})
    if not isinstance(of_findings, dict) or not all(_RANK.fullmatch(rank) for rank in of_findings):
        raise CorrectionsError(
            f"{path}: finding_flip = {_short(of_findings)}",
            expected='{"rank": {"image id": value}}',
        )
    return Corrections(
        data=raw["data"],
        concepts_are_class=tuple(sorted(set(concepts))),
        flip=_flips(path, "flip", raw["flip"]),
        findings_are_class=tuple(sorted(set(findings))),
        finding_flip={
            int(rank): _flips(path, f"finding_flip.{rank}", flips)
            for rank, flips in of_findings.items()
        },
    )


def _flips(path: Path, name: str, flips: Any) -> dict[str, int]:
    if not isinstance(flips, dict):
        raise CorrectionsError(f"{path}: {name} = {_short(flips)}", expected='{"image id": value}')
    for image, value in flips.items():
        if not _is_index(value):
            raise CorrectionsError(
                f"{path}: {name}[{_short(image)}] = {_short(value)}", expected="0, 1, ..."
            )
    return flips


def _short(value: Any) -> str:
    """For a message: the start of what may be a book, or a number too long to print."""
    try:
        return repr(value)[:80]
    except (ValueError, RecursionError):
        return f"a {type(value).__name__} too large to print"


def _is_index(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MANY


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if (twice := repeated(name for name, _ in pairs)) is not None:
        raise ValueError(f"{twice[:200]!r} is given twice")
    return dict(pairs)
