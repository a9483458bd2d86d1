"""A run's artifacts gathered into one plain value, in the words the report uses. Nothing is drawn
and no image is read here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2cp.core.arrays import Ints
from d2cp.core.records import DataSummary, GradCamRecord, MineSummary, ResultRecord
from d2cp.core.run_directory import RunDirectory
from d2cp.core.text import visible
from d2cp.core.typed_json import read_typed
from d2cp.errors import RunError
from d2cp.evaluate.choice import read_choice
from d2cp.evaluate.result import group_name
from d2cp.pipeline.stages import STAGES
from d2cp.report.cells import (
    Confusion,
    ValueName,
    confusions,
    contingency,
    typical_values,
    value_names,
)
from d2cp.report.finding_parts import read_findings
from d2cp.report.image_choice import Sample, choose, kinds
from d2cp.report.named_findings import named_findings
from d2cp.report.outcomes import Outcome, outcomes
from d2cp.report.rows import Rows, read_rows
from d2cp.report.summary import read_reliance

IMAGE_LIMIT = 400
GRADCAM = "gradcam/gradcam.json"
MANY = 10_000  # suspected values: no run has so many
PICTURE_ORDER = (
    "extremes",
    "edit",
    "swap",
    "traversal",
    "attention",
    "reconstruction",
    "histogram",
)


@dataclass(frozen=True, kw_only=True)
class MinedPicture:
    path: Path
    kind: str
    title: str
    caption: str


@dataclass(frozen=True, kw_only=True)
class GradCam:
    """Where the models looked, before and after, on one image whose answer changed."""

    row: int
    before: Path
    after: Path
    y: int
    pseudo: int
    answers: tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What mining said."""

    verdict: str
    sentence: str
    concepts: tuple[int, ...]
    thresholds: tuple[float, ...]
    evidence: Mapping[str, Any]
    recall: Mapping[str, Mapping[str, float]]
    balanced_accuracy: Mapping[str, float]
    best_concept: Mapping[str, Any]
    reasons: tuple[str, ...]
    """What speaks against it."""
    warnings: tuple[str, ...]
    values: int
    pictures: tuple[MinedPicture, ...]
    ranks: tuple[int, ...] = ()
    """Findings of a scan that it is made of; none: mined concepts."""
    named: tuple[str, ...] = ()
    """The option that asked for these."""
    value_names: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ReportData:
    run: Path
    description: Mapping[str, Any]
    environment: Mapping[str, Any]
    seconds: Mapping[str, float]
    name: str
    format: str
    fingerprint: str
    class_names: tuple[str, ...]
    attribute_names: tuple[str, ...] | None
    notes: tuple[str, ...]
    rows: Rows
    finding: Finding | None
    values: tuple[ValueName, ...]
    cells: Mapping[str, Ints]
    """Counts [classes, values] of each split."""
    typical: Ints
    outcomes: tuple[Outcome, ...]
    choice: Mapping[str, Any]
    confusions: tuple[Confusion, ...]
    gradcam: tuple[GradCam, ...]
    scan: Mapping[str, Any]  # findings.json, empty without one
    reliance: Mapping[str, Any]
    stage_parts: Mapping[str, Mapping[str, Any]]  # heading -> summary of a stage
    sample: Sample
    kinds: NDArray[np.int8]

    @property
    def headline(self) -> Outcome | None:
        return self.outcomes[0] if self.outcomes else None

    @property
    def config(self) -> Mapping[str, Any]:
        return self.description.get("config", {})  # type: ignore[no-any-return]


def gather(run: RunDirectory, image_limit: int = IMAGE_LIMIT) -> ReportData:
    """Everything a run has to show; stages that it does not have leave their part empty."""
    description = run.description
    data = run.read("data", "summary.json", DataSummary)
    class_names = tuple(visible(name) for name in data["class_names"])
    attributes = data.get("attribute_names")
    attribute_names = tuple(visible(name) for name in attributes) if attributes else None
    rows = read_rows(run)
    finding = _finding(run) if run.has("mine") else None
    count = finding.values if finding else 2
    rows.require(run, len(class_names), len(attributes or ()), count)
    cells = {
        split: contingency(
            rows.y[rows.split == split], rows.pseudo[rows.split == split], len(class_names), count
        )
        for split in rows.splits()
    }
    reference = cells.get("train", next(iter(cells.values())))
    own = finding.value_names if finding else ()
    names = value_names(rows, reference, class_names, attribute_names, own) if finding else []

    def named(key: str, grouping: str) -> str:
        return group_name(key, grouping, class_names, attribute_names, own)

    config = description.get("config", {})
    found = []
    if run.has("evaluate"):
        results = run.read("evaluate", "results.json", list[ResultRecord])
        found = outcomes(results, config.get("debias", {}).get("selection", ""), named)
    kind = kinds(rows, finding.thresholds if finding else ())
    cams = _gradcam(run, len(rows), len(class_names))
    environment = run.path / "environment.json"
    return ReportData(
        run=run.path,
        description=description,
        environment=(
            read_typed(environment, dict[str, Any], remedy=f"delete {environment}: it only informs")
            if environment.is_file()
            else {}
        ),
        seconds={s.name: run.manifest(s.name)["seconds"] for s in STAGES if run.has(s.name)},
        name=visible(data["name"]),
        format=visible(data.get("format", "")),
        fingerprint=data["fingerprint"],
        class_names=class_names,
        attribute_names=attribute_names,
        notes=_data_notes(data),
        rows=rows,
        finding=finding,
        values=tuple(names),
        cells=cells,
        typical=typical_values(reference),
        outcomes=tuple(found),
        choice=dict(read_choice(run) or {}),
        confusions=tuple(
            confusions(rows, found[0].split, len(class_names), count) if found else []
        ),
        gradcam=cams,
        scan=read_findings(run) if run.has("scan") else {},
        reliance=dict(read_reliance(run) or {}),
        stage_parts={
            s.report: _optional(run, s.name, s.summary) for s in STAGES if s.report and s.summary
        },
        sample=choose(rows, kind, image_limit, [g.row for g in cams]),
        kinds=kind,
    )


def _finding(run: RunDirectory) -> Finding:
    folder, known = run.artifact("mine"), run.manifest("mine")["files"]
    found = run.read("mine", "summary.json", MineSummary)
    pictures = [
        MinedPicture(
            path=folder / p["file"],
            kind=str(p["kind"]),
            title=visible(p["title"]),
            caption=visible(p["caption"]),
        )
        for p in found.get("pictures", [])
        if p["file"] in known
    ]
    rank = {kind: index for index, kind in enumerate(PICTURE_ORDER)}
    pictures.sort(key=lambda p: rank.get(p.kind, len(rank)))
    return Finding(
        verdict=found["verdict"],
        sentence=visible(found["sentence"]),
        concepts=tuple(int(k) for k in found.get("concepts", [])),
        thresholds=_thresholds(found.get("threshold")),
        evidence=found.get("evidence", {}),
        recall=found.get("recall", {}),
        balanced_accuracy=found.get("balanced_accuracy", {}),
        best_concept=found.get("best_concept", {}),
        reasons=tuple(visible(r) for r in found.get("reasons", [])),
        values=_bounded(found["values"], run),
        warnings=tuple(visible(w) for w in found.get("warnings", [])),
        pictures=tuple(pictures),
        ranks=tuple(found.get("findings", [])),
        named=named_findings(found),
        value_names=tuple(visible(name) for name in found.get("value_names", [])),
    )


def _thresholds(value: Any) -> tuple[float, ...]:
    """One cut, several, or none (a pseudo attribute that comes from clusters)."""
    listed = value if isinstance(value, list) else [] if value is None else [value]
    return tuple(float(v) for v in listed if np.isfinite(float(v)))


def _bounded(values: int, run: RunDirectory) -> int:
    if not 1 <= values <= MANY:
        raise RunError(
            f"{run.path / 'mine' / 'summary.json'} speaks of {values} suspected values",
            expected=f"from 1 to {MANY}",
            remedy=f"delete {run.path / 'mine'} and run again; other stages are kept",
        )
    return values


def _gradcam(run: RunDirectory, rows: int, classes: int) -> tuple[GradCam, ...]:
    """Pairs whose pictures the stage wrote: a name that leads elsewhere is not followed."""
    known = run.manifest("evaluate")["files"] if run.has("evaluate") else {}
    if GRADCAM not in known:
        return ()
    folder = run.artifact("evaluate") / "gradcam"
    made = []
    for g in run.read("evaluate", GRADCAM, list[GradCamRecord]):
        labels = (g["y"], g["erm"], g["d2cp"])
        there = all(f"gradcam/{g[end]}" in known for end in ("before", "after"))
        if there and 0 <= g["row"] < rows and all(0 <= label < classes for label in labels):
            made.append(
                GradCam(
                    row=g["row"],
                    before=folder / g["before"],
                    after=folder / g["after"],
                    y=g["y"],
                    pseudo=g["pseudo"],
                    answers=(g["erm"], g["d2cp"]),
                )
            )
    return tuple(made)


def _optional(run: RunDirectory, stage: str, file: str) -> Mapping[str, Any]:
    return run.read(stage, file, dict[str, Any]) if run.has(stage) else {}


def _data_notes(data: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(visible(line) for line in (*data.get("warnings", []), *data.get("notes", [])))
