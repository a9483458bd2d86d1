"""What the run template is handed: plain values, most of them text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from d2cp.core.arrays import UNKNOWN
from d2cp.core.text import visible
from d2cp.evaluate.result import group_name
from d2cp.report import plots
from d2cp.report.cells import MATRIX_CLASSES, commonest_mistakes
from d2cp.report.encode import MAP_BYTES, Picture, data_uri, picture
from d2cp.report.finding_evidence import clues, others
from d2cp.report.html import embedded_json
from d2cp.report.image_choice import KINDS, threshold_distance
from d2cp.report.payload import MinedPicture, ReportData
from d2cp.report.steps import Step, collect_more, corrected_command
from d2cp.report.words import flatten, percent

VERDICTS = {
    "found": "Shortcut found",
    "weak": "Weak signs of a shortcut",
    "none": "No shortcut found",
}
KIND_WORDS = {
    "mended": "wrong before, right after",
    "broken": "right before, wrong after",
    "wrong": "wrong before and after",
    "near": "score close to the threshold",
    "plain": "other",
}
GROUP_WORDS = {
    "true": ("true groups", "class and true attribute"),
    "pseudo": ("suspected groups", "class and suspected value: no true attribute is known"),
    "class": ("by class", "the classes"),
}
REVIEW_LIMIT = 500


def load_pictures(data: ReportData) -> dict[Path, Picture]:
    """Every picture file that the page shows, encoded."""
    shown = {one.path: picture(one.path) for one in _mined(data)}
    for one in data.gradcam:
        shown |= {path: picture(path, MAP_BYTES) for path in (one.before, one.after)}
    return shown


def run_page(
    data: ReportData,
    pictures: Mapping[Path, Picture],
    thumbs: Mapping[int, bytes],
    image_note: str,
    steps: list[Step],
    findings: list[dict[str, Any]],
) -> dict[str, Any]:
    """`findings` is what `findings_shown` makes of the run's scan."""
    return {
        "data": data,
        "title": f"{data.name}: D2CP report",
        "verdict": VERDICTS.get(data.finding.verdict, "") if data.finding else "Not mined yet",
        "known_values": _known_values(data),
        "clues": clues(data.finding.evidence) if data.finding and data.finding.evidence else [],
        "scan_findings": findings,
        "more_evidence": _more_evidence(data),
        "recall": _recall(data),
        "pictures": [{"file": pictures[one.path], "about": one} for one in _mined(data)],
        "histograms": _histograms(data),
        "group_words": GROUP_WORDS,
        "tracks": plots.accuracy_track,
        "axis": plots.axis(),
        "matrices": len(data.class_names) <= MATRIX_CLASSES and len(data.values) <= MATRIX_CLASSES,
        "mistakes": commonest_mistakes(list(data.confusions)),
        "gradcam": _gradcam(data, pictures, thumbs),
        "images": _images(data, thumbs),
        "image_note": image_note,
        "kind_words": {k: KIND_WORDS[k] for k in _kinds_shown(data, thumbs)},
        "review": _review_summary(data),
        "review_limit": REVIEW_LIMIT,
        "collect": collect_more(data),
        "steps": steps,
        "corrected": corrected_command(data),
        "config": flatten(dict(data.config)),
        "environment": flatten(dict(data.environment)),
        "stage_parts": {title: flatten(dict(part)) for title, part in data.stage_parts.items()},
        "payload": embedded_json(_payload(data)),
    }


def _known_values(data: ReportData) -> str:
    """What the suspected values are called where a true attribute tells."""
    if data.finding is None or data.finding.verdict == "none" or data.attribute_names is None:
        return ""
    named = [v for v in data.values if v.hint.startswith("mostly")]
    return ", ".join(f"{v.plain} is {v.hint}" for v in named)


def _more_evidence(data: ReportData) -> list[tuple[str, str]]:
    if data.finding is None:
        return []
    named = (
        {"best concept for": dict(data.finding.best_concept)} if data.finding.best_concept else {}
    )
    return [*others(data.finding.evidence), *flatten(named)]


def _mined(data: ReportData) -> list[MinedPicture]:
    """Pictures of the mining stage, without a histogram that the page draws anew."""
    if data.finding is None:
        return []
    drawn = bool(data.finding.thresholds)
    return [one for one in data.finding.pictures if not (drawn and one.kind == "histogram")]


def _histograms(data: ReportData) -> list[plots.Histogram]:
    if data.finding is None or not data.finding.thresholds:
        return []
    train = data.rows.split == "train"
    chosen = train if train.any() else np.ones(len(data.rows), dtype=bool)
    return plots.score_histograms(
        data.rows.score[chosen],
        data.rows.y[chosen],
        data.class_names,
        list(data.finding.thresholds),
    )


def _recall(data: ReportData) -> list[dict[str, Any]]:
    """How often the pseudo value is the true attribute: a row a group, a figure a split."""
    if data.finding is None:
        return []
    recall = data.finding.recall
    keys = dict.fromkeys(key for groups in recall.values() for key in groups)
    return [
        {
            "name": group_name(key, "true", data.class_names, data.attribute_names),
            "shares": [percent(groups.get(key)) for groups in recall.values()],
        }
        for key in sorted(keys, key=lambda key: [int(part) for part in key.split(",")])
    ]


def _class(data: ReportData, label: int) -> str:
    return data.class_names[label] if label != UNKNOWN else ""


def _images(data: ReportData, thumbs: Mapping[int, bytes]) -> list[dict[str, Any]]:
    rows = data.rows
    shown = []
    for row in data.sample.rows.tolist():
        if row not in thumbs:
            continue
        y, after = int(rows.y[row]), int(rows.after[row])
        shown.append(
            {
                "row": row,
                "uri": data_uri(thumbs[row]),
                "id": rows.ids[row],
                "name": visible(rows.ids[row]),
                "split": str(rows.split[row]),
                "y": y,
                "class": data.class_names[y],
                "value": int(rows.pseudo[row]),
                "attribute": _attribute(data, row),
                "score": "" if np.isnan(rows.score[row]) else f"{rows.score[row]:.3g}",
                "before": _class(data, int(rows.before[row])),
                "after": _class(data, after),
                "before_p": _confidence(float(rows.before_p[row])),
                "after_p": _confidence(float(rows.after_p[row])),
                "answer": "none" if after == UNKNOWN else "right" if after == y else "wrong",
                "kind": KINDS[data.kinds[row]],
            }
        )
    return shown


def _attribute(data: ReportData, row: int) -> str:
    if data.rows.a is None or data.attribute_names is None:
        return ""
    return data.attribute_names[int(data.rows.a[row])]


def _confidence(value: float) -> str:
    return "" if np.isnan(value) else f"{100 * value:.0f}% sure"


def _kinds_shown(data: ReportData, thumbs: Mapping[int, bytes]) -> list[str]:
    present = {KINDS[data.kinds[row]] for row in data.sample.rows.tolist() if row in thumbs}
    return [kind for kind in KIND_WORDS if kind in present]


def _gradcam(
    data: ReportData, pictures: Mapping[Path, Picture], thumbs: Mapping[int, bytes]
) -> list[dict[str, Any]]:
    return [
        {
            "original": data_uri(thumbs[one.row]) if one.row in thumbs else "",
            "before": pictures[one.before].uri,
            "after": pictures[one.after].uri,
            "class": data.class_names[one.y],
            "value": one.pseudo,
            "answers": [data.class_names[k] for k in one.answers],
        }
        for one in data.gradcam
        if one.before in pictures
    ]


def _review(data: ReportData) -> dict[str, list[int]]:
    """Rows worth a person's look, by reason: the answer may be right and the label wrong."""
    near = np.flatnonzero(data.kinds == KINDS.index("near"))
    if len(near) and data.finding:
        distance = threshold_distance(data.rows, data.finding.thresholds)
        near = near[np.argsort(distance[near], kind="stable")]
    wrong = np.flatnonzero(data.kinds == KINDS.index("wrong"))
    sure = np.argsort(-np.nan_to_num(data.rows.after_p[wrong]), kind="stable")
    return {"near": near[:REVIEW_LIMIT].tolist(), "wrong": wrong[sure][:REVIEW_LIMIT].tolist()}


def _review_summary(data: ReportData) -> dict[str, int]:
    return {kind: int((data.kinds == KINDS.index(kind)).sum()) for kind in ("near", "wrong")}


def _payload(data: ReportData) -> dict[str, Any]:
    """What the script needs beside the page itself."""
    rows = data.rows
    listed = [
        [
            rows.ids[row],
            str(rows.split[row]),
            data.class_names[int(rows.y[row])],
            int(rows.pseudo[row]),
            KIND_WORDS[reason],
        ]
        for reason, chosen in _review(data).items()
        for row in chosen
    ]
    return {
        "schema": 1,
        "data": data.fingerprint,
        "values": [name.text for name in data.values],
        "review": listed,
    }
