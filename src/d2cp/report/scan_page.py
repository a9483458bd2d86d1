"""The page of a scan: ranked findings with pictures, what to review, a model's leaning."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from d2cp.core.records import FindingRecord
from d2cp.core.run_directory import RunDirectory
from d2cp.core.text import visible
from d2cp.data.place import Place
from d2cp.data.table import Table
from d2cp.errors import D2CPError
from d2cp.report.encode import data_uri
from d2cp.report.finding_parts import findings_shown, read_findings
from d2cp.report.html import embedded_json
from d2cp.report.page import VERDICTS
from d2cp.report.steps import Step, commands
from d2cp.report.summary import read_answers, summarise
from d2cp.report.thumbs import load_thumbnails
from d2cp.report.words import count, flatten, percent

FOUND, WEAK = "found", "weak"
SHOWN = 12  # images of each list
LISTED = 40  # lines of a list without pictures
THUMB_BYTES = 1_200_000


def scan_page(run: RunDirectory, table: Table | None = None) -> dict[str, Any]:
    """`table` is the data set where the caller has it in hand; else it is found again."""
    folder = run.artifact("scan")
    whole = read_findings(run)
    data = whole["data"]
    classes = [visible(name) for name in data["class_names"]]
    answers = read_answers(run)
    review = whole["review"]
    thumbs, note = _thumbnails(run, table, _wanted(review, answers))
    return {
        "title": f"{visible(data['name'])}: D2CP scan",
        "name": visible(data["name"]),
        "outcome": whole["outcome"],
        "verdict": VERDICTS[whole["outcome"]],
        "headline": headline(whole["findings"], classes),
        "images": sum(n for cells in data["counts"].values() for n in cells.values()),
        "classes": classes,
        "findings": findings_shown(whole, folder),
        "predictions": None if answers is None else _answers(answers, thumbs),
        "copies": [_visible(c) for c in review["copies"][:LISTED]],
        "copies_total": review["copies_total"],
        "labels": [
            {**_visible(one), "uri": thumbs.get(one["image"], "")}
            for one in review["labels"][:LISTED]
        ],
        "labels_total": review["labels_total"],
        "notes": [visible(n) for n in (*data["warnings"], *data["notes"], *whole["notes"])],
        "image_note": note,
        "steps": _steps(run),
        "settings": flatten(run.description.get("config", {}).get("scan", {})),
        "version": visible(run.description.get("version", "")),
        "fingerprint": visible(run.data.get("fingerprint", "")),
        "seconds": run.manifest("scan")["seconds"],
        "payload": embedded_json({"schema": 1, "data": "", "values": [], "review": []}),
    }


def headline(findings: Sequence[FindingRecord], classes: list[str]) -> str:
    """The whole scan in one sentence."""
    for outcome in (FOUND, WEAK):
        those = [f for f in findings if f["outcome"] == outcome]
        if not those:
            continue
        first = those[0]
        among = "two classes" if len(classes) == 2 else count(len(classes), "class", "classes")
        told = (
            f"“{visible(first['name'])}” alone tells {percent(first['agreement'])} of the images' "
            f"class, {among} counted alike"
        )
        more = len(those) - 1
        if outcome == WEAK:
            return f"Nothing strong, but {told}."
        further = f"; {count(more, 'further finding')} stand{'s' if more == 1 else ''} beside it"
        return f"A model could cheat: {told}{further if more else ''}."
    return "No lens tells the classes better than labels dealt at random."


def _visible(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {k: visible(v) if isinstance(v, str) else v for k, v in entry.items()}


def _answers(answers: Mapping[str, Any], thumbs: Mapping[str, str]) -> dict[str, Any]:
    leans = []
    for lean in answers["findings"]:
        victims = [
            {**_visible(v), "uri": thumbs.get(v["image"], "")} for v in lean["victims"][:SHOWN]
        ]
        leans.append(
            {
                **lean,
                "name": visible(lean["name"]),
                "sentence": visible(lean["sentence"]),
                "classes": [_visible(c) for c in lean["classes"]],
                "victims": victims,
                "victims_total": len(lean["victims"]),
            }
        )
    return {**answers, "file": visible(answers["file"]), "findings": leans}


def _wanted(review: Mapping[str, Any], answers: Mapping[str, Any] | None) -> list[str]:
    wanted = [one["image"] for one in review["labels"][:LISTED]]
    for lean in answers["findings"] if answers else ():
        wanted += [v["image"] for v in lean["victims"][:SHOWN]]
    return list(dict.fromkeys(wanted))


def _thumbnails(
    run: RunDirectory, table: Table | None, wanted: list[str]
) -> tuple[dict[str, str], str]:
    if not wanted:
        return {}, ""
    try:
        if table is None:
            table = Place.from_record(run.data).table()
        rows = np.arange(len(wanted), dtype=np.int64)
        made = load_thumbnails(table, wanted, rows, THUMB_BYTES)
        return {wanted[row]: data_uri(data) for row, data in made.items()}, ""
    except (D2CPError, OSError) as error:
        reason = visible(str(error).splitlines()[0])
        return {}, f"The images could not be read again, so they are named only: {reason}"


def _steps(run: RunDirectory) -> list[Step]:
    """The next commands, and what a model's own predictions would tell."""
    found = Place.from_record(run.data)
    place = shlex.join([found.data, *found.options()])
    own = Step(
        text="Does a model of yours lean on it? A CSV with image and predicted class tells.",
        command=f"d2cp scan {place} --out {shlex.quote(str(run.path))} "
        "--predictions predictions.csv",
    )
    steps = commands(run.path, run.description, summarise(run))
    return [*steps[:-1], own, steps[-1]]
