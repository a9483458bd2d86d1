"""The page of a scan: ranked findings with pictures, what to review, a model's leaning."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from d2cp.core.files import read_json
from d2cp.core.run_directory import RunDirectory
from d2cp.core.text import visible
from d2cp.data.place import Place
from d2cp.data.table import Table
from d2cp.errors import D2CPError, RunError
from d2cp.report.encode import data_uri, picture
from d2cp.report.html import embedded_json
from d2cp.report.page import VERDICTS
from d2cp.report.steps import Step
from d2cp.report.thumbs import load_thumbnails
from d2cp.report.words import count, flatten, percent

FOUND, WEAK = "found", "weak"
SHOWN = 12  # images of each list
LISTED = 40  # lines of a list without pictures
THUMB_BYTES = 1_200_000
LENS_WORDS = {
    "local pattern": "Something small, anywhere in the picture: a mark, a label, an object beside "
    "the one you mean.",
    "texture": "What the picture is made of all over: grass, water, grain.",
    "colour": "Which colours there are, wherever they are.",
    "layout": "What is bright or coloured where, at the coarsest: horizon, vignette, pose.",
    "sharpness": "How sharp, noisy or compressed the picture is.",
    "border": "The outermost strips and the corners: frames, time stamps, cropping.",
    "file": "The file and not the picture: size, format, compression, camera.",
}


def scan_page(run: RunDirectory, table: Table | None = None) -> dict[str, Any]:
    """`table` is the data set where the caller has it in hand; else it is found again."""
    folder = run.artifact("scan")
    whole = read_json(folder / "findings.json")
    data = whole["data"]
    classes = [visible(name) for name in data["class_names"]]
    predictions = folder / "predictions.json"
    answers = read_json(predictions) if predictions.is_file() else None
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
        "findings": [_finding(f, whole, classes, folder) for f in whole["findings"]],
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
        "steps": _steps(run, whole["outcome"]),
        "settings": flatten(run.description.get("scan_settings", {})),
        "version": visible(run.description.get("version", "")),
        "fingerprint": visible(run.description["data"]["fingerprint"]),
        "seconds": run.manifest("scan")["seconds"],
        "payload": embedded_json({"schema": 1, "data": "", "values": [], "review": []}),
    }


def headline(findings: list[dict[str, Any]], classes: list[str]) -> str:
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


def _finding(
    f: Mapping[str, Any], whole: Mapping[str, Any], classes: list[str], folder: Path
) -> dict[str, Any]:
    names = [visible(name) for name in f["value_names"]]
    cells = whole["cells"][str(f["rank"])]
    split = "train" if "train" in cells else next(iter(cells))
    counts = np.array(cells[split])
    shown = [p for p in whole["pictures"] if p["finding"] == f["rank"]]
    return {
        **f,
        "name": visible(f["name"]),
        "value_names": names,
        "lens_words": LENS_WORDS.get(f["lens"], "A column of your own."),
        "lenses": [visible(name) for name in f["lenses"]],
        "reasons": [visible(reason) for reason in f["reasons"]],
        "sentence": _sentence(names, classes, counts),
        "bar": round(200 * min(1.0, max(0.0, f["strength"])), 1),
        "counts": counts,
        "pictures": [
            {
                "file": picture(_inside(folder, p["file"])),
                "title": visible(p["title"]),
                "caption": visible(p["caption"]),
            }
            for p in shown
        ],
    }


def _sentence(names: list[str], classes: list[str], counts: Any) -> str:
    """Which value goes with which class, and how many training images do not follow."""
    against = int(counts.sum() - np.trace(counts))
    total = int(counts.sum())
    rest = f"{count(against, 'image')} of {total:,} in training go against it"
    if len(classes) == 2:
        return f"“{names[0]}” goes with {classes[0]}, “{names[1]}” with {classes[1]}; {rest}."
    return f"Each class has its own look of this kind; {rest}."


def _inside(folder: Path, name: str) -> Path:
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise RunError(f"{folder}: a picture outside of the scan, {visible(name)}")
    return path


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
            table = Place.from_record(run.description["data"]).table()
        rows = np.arange(len(wanted), dtype=np.int64)
        made = load_thumbnails(table, wanted, rows, THUMB_BYTES)
        return {wanted[row]: data_uri(data) for row, data in made.items()}, ""
    except (D2CPError, OSError) as error:
        reason = visible(str(error).splitlines()[0])
        return {}, f"The images could not be read again, so they are named only: {reason}"


def _steps(run: RunDirectory, outcome: str) -> list[Step]:
    data = run.description["data"]
    found = Place.from_record(data)
    place = shlex.join([found.data, *found.options()])
    target = shlex.quote(str(run.path))
    steps = [
        Step(
            text="Does a model of yours lean on it? A CSV with image and predicted class tells.",
            command=f"d2cp scan {place} --out {target} --predictions predictions.csv",
        ),
        Step(text="Every figure again, for a script.", command=f"d2cp show {target} --json"),
    ]
    if outcome != "none":
        new = shlex.quote(f"{run.path}-run")
        train = Step(
            text="Train a classifier that does not use the shortcut.",
            command=f"d2cp run {place} --out {new}",
        )
        steps.insert(0, train)
    return steps
