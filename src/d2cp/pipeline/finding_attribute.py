"""The pseudo attribute from a scan's findings: their values, or the product of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from d2cp.core.arrays import Ints
from d2cp.data.table import Table
from d2cp.errors import ConfigError
from d2cp.pipeline.corrections import Corrections
from d2cp.scan.combine import RARE, combine
from d2cp.scan.finding import Finding, Scan

MOST_CELLS = 16
"""Combinations of values that a run makes groups of without being told which findings to use."""


@dataclass(frozen=True)
class FindingAttribute:
    pseudo: Ints
    score: Any
    summary: dict[str, Any]


def chosen(found: Scan, ranks: Sequence[int], corrected: Corrections | None) -> list[Finding]:
    """The findings of these ranks; what there is where one is not among them."""
    known = {f.rank: f for f in found.findings}
    listed = ", ".join(f"{f.rank} ({f.name}, {f.outcome})" for f in found.findings)
    unknown = [rank for rank in ranks if rank not in known]
    if unknown:
        raise ConfigError(
            f"--findings {','.join(map(str, ranks))}: there is no finding {unknown[0]}",
            expected=f"some of {listed}" if listed else "a scan that finds something",
            remedy="`d2cp show RUN` lists the findings" if listed else "leave --findings out",
        )
    denied = set() if corrected is None else set(corrected.findings_are_class)
    if both := [rank for rank in ranks if rank in denied]:
        raise ConfigError(
            f"--findings {','.join(map(str, ranks))}: the corrections say that finding {both[0]} "
            "is the class itself",
            expected=f"some of {listed}",
            remedy="leave it out here or there",
        )
    return [known[rank] for rank in ranks]


def all_found(found: Scan, corrected: Corrections | None) -> list[Finding]:
    """The findings that are called found and that nobody called the class itself, the strongest
    first, as long as their combinations are not too many. A model that is repaired for one of two
    cues leans on the other."""
    denied = () if corrected is None else corrected.findings_are_class
    made: list[Finding] = []
    for finding in found.findings:
        if finding.outcome != "found" or finding.rank in denied:
            continue
        if not made or prod(f.values for f in (*made, finding)) <= MOST_CELLS:
            made.append(finding)
    return made


def corrected_values(finding: Finding, table: Table, corrected: Corrections | None) -> Ints:
    """The finding's values, with a person's where they gave some."""
    if corrected is None or finding.rank not in corrected.finding_flip:
        return finding.value
    own = replace(corrected, flip=corrected.finding_flip[finding.rank])
    return own.flipped(finding.value, table.ids.tolist(), finding.values)


def attribute_of(
    findings: Sequence[Finding], table: Table, corrected: Corrections | None
) -> FindingAttribute:
    """One pseudo attribute of these findings, and what is said of it."""
    train, val = table.rows("train"), table.rows("val")
    made = combine(
        [corrected_values(f, table, corrected) for f in findings],
        [f.values for f in findings],
        table.y,
        train,
        np.concatenate([train, val]),
    )
    names = [_name(part, findings) for part in made.parts]
    merged = [
        {
            "class": table.class_names[m.label],
            "value": _name(_parts(m.value, findings), findings),
            "into": _name(_parts(m.into, findings), findings),
            "images": m.images,
        }
        for m in made.merged
    ]
    pseudo = made.labels
    if corrected is not None:
        pseudo = corrected.flipped(pseudo, table.ids.tolist(), len(names))
    first = findings[0]
    summary: dict[str, Any] = {
        "verdict": _strongest(findings),
        "sentence": _sentence(findings, table),
        "reasons": [],
        "evidence": {},
        "concepts": [],
        "values": len(names),
        "value_names": names,
        "cells": [list(part) for part in made.parts],
        "findings": [f.rank for f in findings],
        "merged": merged,
        "warnings": [_said(m) for m in merged],
    }
    if len(findings) == 1 and first.threshold is not None:
        summary["threshold"] = first.threshold
    return FindingAttribute(pseudo, first.score, summary)


def _parts(code: int, findings: Sequence[Finding]) -> tuple[int, ...]:
    return tuple(int(p) for p in np.unravel_index(code, tuple(f.values for f in findings)))


def _name(parts: Sequence[int], findings: Sequence[Finding]) -> str:
    return ", ".join(f.value_names[v] for f, v in zip(findings, parts, strict=True))


def _strongest(findings: Sequence[Finding]) -> str:
    outcomes = {f.outcome for f in findings}
    return next(o for o in ("found", "weak", "none") if o in outcomes)


def _sentence(findings: Sequence[Finding], table: Table) -> str:
    """What the groups are made of, in one sentence."""
    names = " and ".join(f"“{f.name}” (finding {f.rank})" for f in findings)
    if len(findings) > 1:
        made = f"{names} make the groups"
    else:
        (only,), train = findings, table.rows("train")
        against = int((only.value[train] != table.y[train]).sum())
        made = (
            f"{names} alone tells {only.agreement:.1%} of the images' class; {against:,} of "
            f"{len(train):,} training images go against it"
        )
    return f"A model could cheat: {made}." if _strongest(findings) == "found" else f"{made}."


def _said(merged: dict[str, Any]) -> str:
    images = merged["images"]
    return (
        f"{images} training image{'s' * (images != 1)} of {merged['class']} with "
        f"“{merged['value']}” {'are' if images != 1 else 'is'} counted as “{merged['into']}”: "
        f"fewer than {RARE} make no group of their own"
    )
