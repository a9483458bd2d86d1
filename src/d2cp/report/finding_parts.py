"""A scan's findings as a page shows them: words, counts, pictures, reliance before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from d2cp.core.records import ScanRecord
from d2cp.core.run_directory import RunDirectory
from d2cp.core.text import visible
from d2cp.errors import RunError
from d2cp.report.encode import picture
from d2cp.report.words import count
from d2cp.scan.details import DETAILS

LENS_WORDS = {
    "repeated detail": "A piece of the picture that recurs nearly unchanged in others: a label, a "
    "logo, a time stamp, a ruler.",
    "coloured detail": "Small parts in a colour of their own: a sticker, a stroke of a pen, a "
    "date.",
    "local pattern": "Something small, anywhere in the picture: a mark, a label, an object beside "
    "the one you mean.",
    "texture": "What the picture is made of all over: grass, water, grain.",
    "colour": "Which colours there are, wherever they are.",
    "tint": "The colour of the light: a cast over the whole picture, whatever it shows.",
    "layout": "What is bright or coloured where, at the coarsest: horizon, vignette, pose.",
    "saturation": "How colourful the picture is, whatever its colours are.",
    "sharpness": "How sharp, noisy or compressed the picture is.",
    "border": "The outermost strips and the corners: frames, time stamps, cropping.",
    "file": "The file and not the picture: size, format, compression, camera.",
}


EXCHANGED = {
    "title": "What training also saw",
    "caption": "Training images as they would look with another value of what makes the groups: "
    "the cue of a donor is put in, or its pixels are laid over the cue. They join the few images "
    "that really go against it. A control, cut in the same way, keeps its value.",
}

WIDE = 2
"""Width over height from which a picture goes across the whole page."""


def read_findings(run: RunDirectory) -> dict[str, Any]:
    """All of findings.json; an error where an earlier version left parts of it out."""
    whole = run.read("scan", "findings.json", dict[str, Any])
    if missing := [key for key in DETAILS if key not in whole]:
        raise RunError(
            f"{run.path / 'scan'} was written by an earlier version: it has no {missing[0]}",
            expected=f"a scan with {', '.join(DETAILS)}",
            remedy="scan the data set again, into a new folder",
        )
    return cast(dict[str, Any], run.read("scan", "findings.json", ScanRecord))


def findings_shown(
    whole: Mapping[str, Any],
    folder: Path,
    used: Sequence[int] = (),
    reliance: Mapping[str, Any] | None = None,
    exchanged: Path | None = None,
) -> list[dict[str, Any]]:
    """The findings in rank order; `used` made the groups, `reliance` is evaluate/reliance.json,
    `exchanged` the picture of what training saw with the cue exchanged."""
    classes = [visible(name) for name in whole["data"]["class_names"]]
    leans = {lean["rank"]: lean for lean in (reliance or {}).get("findings", ())}
    shown = [
        {
            **_finding(f, whole, classes, folder),
            "used": f["rank"] in used,
            "reliance": _reliance(leans.get(f["rank"])),
        }
        for f in whole["findings"]
    ]
    first = next((f for f in shown if f["used"]), None)
    if first is not None and exchanged is not None:
        first["pictures"].append({**EXCHANGED, "file": picture(exchanged), "wide": True})
        first["pictures"].sort(key=lambda p: not p["wide"])
    return shown


def _finding(
    f: Mapping[str, Any], whole: Mapping[str, Any], classes: list[str], folder: Path
) -> dict[str, Any]:
    names = [visible(name) for name in f["value_names"]]
    cells = whole["cells"][str(f["rank"])]
    split = "train" if "train" in cells else next(iter(cells))
    counts = np.array(cells[split])
    return {
        **f,
        "name": visible(f["name"]),
        "value_names": names,
        "lens_words": LENS_WORDS.get(f["lens"], "A column of your own."),
        "lenses": [visible(name) for name in f["lenses"]],
        "reasons": [visible(reason) for reason in f["reasons"]],
        "words": visible(f["words"]["sentence"]) if "words" in f else "",
        "sentence": _sentence(names, classes, counts),
        "bar": round(200 * min(1.0, max(0.0, f["strength"])), 1),
        "counts": counts,
        "pictures": _pictures(f, whole, folder),
    }


def _pictures(f: Mapping[str, Any], whole: Mapping[str, Any], folder: Path) -> list[dict[str, Any]]:
    """Wide ones first: they go across the page, the others beside each other below."""
    mine = [p for p in whole["pictures"] if p["finding"] == f["rank"]]
    made = []
    for p, file in ((p, picture(_inside(folder, p["file"]))) for p in mine):
        shown = {"title": visible(p["title"]), "caption": visible(p["caption"])}
        made.append({**shown, "file": file, "wide": file.width > WIDE * file.height})
    return sorted(made, key=lambda p: not p["wide"])


def _sentence(names: list[str], classes: list[str], counts: Any) -> str:
    """Which value goes with which class, and how many training images do not follow."""
    against = int(counts.sum() - np.trace(counts))
    total = int(counts.sum())
    rest = f"{count(against, 'image')} of {total:,} in training go against it"
    if len(classes) == 2:
        return f"“{names[0]}” goes with {classes[0]}, “{names[1]}” with {classes[1]}; {rest}."
    return f"Each class has its own look of this kind; {rest}."


def _reliance(lean: Mapping[str, Any] | None) -> dict[str, str] | None:
    """Figures as text; before and change are empty without a control."""
    if lean is None or lean["d2cp"]["gap"] is None:
        return None
    before = lean.get("erm", {})
    return {
        "before": points(before.get("gap")),
        "before_interval": spread(before.get("interval")),
        "after": points(lean["d2cp"]["gap"]),
        "after_interval": spread(lean["d2cp"]["interval"]),
        "rise": _rise(lean),
        "flips": visible((lean.get("transplant") or {}).get("sentence", "")),
        "sentence": visible(lean["sentence"]),
    }


def _rise(lean: Mapping[str, Any]) -> str:
    if not lean.get("rise"):
        return ""
    return "rose" if lean.get("beyond_chance", False) else "rose, within chance"


def points(value: float | None) -> str:
    return "" if value is None else f"{100 * value:+.1f}".replace("-", "−")


def spread(interval: Sequence[float] | None) -> str:
    return "" if interval is None else f"[{points(interval[0])}, {points(interval[1])}]"


def _inside(folder: Path, name: str) -> Path:
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise RunError(f"{folder}: a picture outside of the scan, {visible(name)}")
    return path
