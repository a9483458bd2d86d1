"""README.md of an exported classifier: what it was trained on, how well it does by group, and what
it is for. Nothing in it names a folder of the machine it was made on."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from d2cp.core.records import DataSummary, MineSummary, ResultRecord
from d2cp.core.run_directory import RunDirectory
from d2cp.core.text import visible
from d2cp.evaluate.columns import COLUMNS
from d2cp.evaluate.result import group_name

METHODS = {"debias": "d2cp", "erm": "erm"}
TITLES = {
    "debias": "Trained by D2CP so that it does not use the shortcut described below.",
    "erm": "Trained plainly (ERM): nothing keeps it from using the shortcut described below.",
}
GROUPS = {
    "true": "class and true attribute",
    "pseudo": "class and suspected value of the shortcut; true groups are not known",
    "class": "classes",
}
FRONT = """\
---
library_name: transformers
pipeline_tag: image-classification
tags: [d2cp, image-classification, debiasing]
---
"""
USE = """\
## Use

With D2CP installed (`import d2cp` makes the model type known):

```python
import d2cp
from transformers import pipeline

classify = pipeline("image-classification", model="THIS FOLDER")
classify("photo.jpg")
```

or `d2cp predict "THIS FOLDER" photo.jpg`, or `d2cp.D2CP.from_pretrained("THIS FOLDER")`.

{without}
"""
ONNX = "Without D2CP: `model.onnx` takes normalised pixels `[batch, 3, {size}, {size}]`, made as \
`preprocessor_config.json` says, and gives `logits`."
NO_ONNX = "It is no stock architecture of transformers ({why}), so that D2CP is needed to load it. \
Without D2CP: `d2cp export RUN --to FOLDER --onnx` writes an ONNX file beside it."
LIMITS = """\
## Intended use and limits

It tells the classes above apart in images like those it was trained on. The figures hold for the
test images of that data set; other cameras, places or people may have other shortcuts. The
shortcut was found without labels of it, so that "none found" is no proof that there is none. Look
at the figures of the worst group before you rely on the mean.
"""


def model_card(run: RunDirectory, stage: str, config: Mapping[str, Any], *, onnx: bool) -> str:
    """`config` is the exported model's; `stage` the run's stage that was exported."""
    parts = [f"# {_text(_name(run))}: image classifier", TITLES[stage], *_training(run, config)]
    if run.has("data"):
        parts += _data(run.read("data", "summary.json", DataSummary))
    if run.has("mine"):
        found = run.read("mine", "summary.json", MineSummary)
        parts += ["## The shortcut", f"Verdict: {found['verdict']}. {_text(found['sentence'])}"]
    if run.has("evaluate"):
        results = run.read("evaluate", "results.json", list[ResultRecord])
        parts += _figures(results, METHODS[stage])
    why = "prompts act as extra keys and values" if config["prompt_length"] else "it has an adapter"
    without = ONNX.format(size=config["image_size"]) if onnx else NO_ONNX.format(why=why)
    return FRONT + "\n\n".join([*parts, USE.format(without=without), LIMITS])


def _name(run: RunDirectory) -> str:
    data = run.description.get("data", {})
    return str(data.get("name", "classifier"))


def _training(run: RunDirectory, config: Mapping[str, Any]) -> Iterator[str]:
    about = run.description
    settings = about.get("config", {})
    backbone = PurePath(str(settings.get("backbone", ""))).name
    said = {
        "backbone": f"{backbone} ({config['backbone']['model_type']}, frozen)",
        "preset": settings.get("preset"),
        "seed": settings.get("seed"),
        "d2cp": about.get("version"),
    }
    yield ", ".join(f"{key} {_text(value)}" for key, value in said.items() if value is not None)


def _data(summary: Mapping[str, Any]) -> Iterator[str]:
    """Images of every class and, where known, attribute in every split."""
    cells = dict.fromkeys(cell for counts in summary["counts"].values() for cell in counts)

    def named(cell: str) -> str:
        attributes = summary.get("attribute_names")
        kind = "true" if attributes else "class"
        return group_name(cell, kind, summary["class_names"], attributes)

    yield "## Data"
    yield _table(
        ["images", *summary["counts"]],
        [[named(c), *(counts.get(c, 0) for counts in summary["counts"].values())] for c in cells],
    )


def _figures(results: Sequence[Mapping[str, Any]], method: str) -> Iterator[str]:
    for result in results:
        if result["method"] != method:
            continue
        yield f"## Accuracy on {_text(result['split'])}, in %"
        yield f"Groups: {GROUPS[result['grouping']]}. Selection: {result['selection']}."
        spread = result["intervals"]
        yield _table(
            ["figure", "value", "95% interval"],
            [
                [
                    column.titled([result["grouping"]]),
                    f"{100 * result[column.key]:.1f}",
                    "{:.1f} to {:.1f}".format(*(100 * bound for bound in spread[column.key])),
                ]
                for column in COLUMNS
            ],
        )
        yield _table(
            ["group", "images", "accuracy"],
            [
                [group["name"], group["n"], f"{100 * group['accuracy']:.1f}"]
                for group in result["groups"].values()
            ],
        )


def _table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(_text(cell) for cell in line)} |" for line in lines)


def _text(value: object) -> str:
    """Names are data: no mark-up of theirs is obeyed."""
    text = html.escape(visible(value), quote=False)
    return "".join(f"\\{c}" if c in "|`*_[]\\#" else c for c in text)
