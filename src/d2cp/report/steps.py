"""What to do after a run: sentences and commands that can be typed as they stand."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from d2cp.config import load_config, preset_names
from d2cp.core.arrays import Ints
from d2cp.core.run_directory import RunDirectory
from d2cp.data.coloured import EMBEDDED_SETS
from d2cp.data.place import Place
from d2cp.report.named_findings import named_findings
from d2cp.report.payload import ReportData
from d2cp.report.summary import summarise
from d2cp.report.words import SPLIT_WORDS, percent

NAMED_OPTIONS = ("preset", "seed", "backbone")


@dataclass(frozen=True, kw_only=True)
class Step:
    text: str
    command: str
    said: bool = False
    """Whether the text stands above the command on the terminal, too."""

    @property
    def lines(self) -> list[str]:
        return [f"# {self.text}", self.command] if self.said else [self.command]


def next_steps(run: RunDirectory) -> list[str]:
    """Lines for the end of a command's output: the report, then the commands that follow."""
    report = run.path / "report.html"
    lines = [f"Report: {report}"] if report.is_file() else []
    if (run.path / "compare.json").is_file():
        return [*lines, "Next:", f"  d2cp show {shlex.quote(str(run.path))} --json"]
    steps = commands(run.path, run.description, summarise(run))
    return [*lines, "Next:", *(f"  {line}" for step in steps for line in step.lines)]


def commands(path: Path, description: Mapping[str, Any], whole: Mapping[str, Any]) -> list[Step]:
    """`whole` is what `d2cp.report.summary.summarise` says."""
    target = shlex.quote(str(path))
    steps = []
    if "results" in whole:
        model = shlex.quote(f"{path}-classifier")
        steps.append(
            Step(
                text="Ship the classifier: one pass of the backbone, as a Hugging Face folder.",
                command=f"d2cp export {target} --to {model}",
            )
        )
        steps.append(
            Step(
                text="Use it on new images. (Exported --with-shortcut, each line also gives the "
                "suspected shortcut value.)",
                command=f"d2cp predict {model} new/*.jpg",
            )
        )
    elif "discover" in whole:
        steps.append(
            Step(
                text="Train a classifier that does not use the shortcut; what is done is kept.",
                command=run_command(path, description, named_findings(whole["discover"])),
            )
        )
    elif "findings" in whole:
        steps += _from_scan(path, description, whole["findings"])
    steps.append(
        Step(text="Every figure again, for a script.", command=f"d2cp show {target} --json")
    )
    return steps


def _from_scan(
    path: Path, description: Mapping[str, Any], findings: Sequence[Mapping[str, Any]]
) -> list[Step]:
    """The run that goes on from the scan, and one that mends several findings at once."""
    found = [str(f["rank"]) for f in findings if f["outcome"] == "found"]
    ranks = found or [str(f["rank"]) for f in findings if f["outcome"] == "weak"][:1]
    if not ranks:
        return []
    several = "these findings" if len(ranks) > 1 else f"finding {ranks[0]}"
    text = f"Train a classifier that does not use {several}; the scan is kept."
    if not found:
        text = (
            f"Nothing was found. Whether a model leans on {several}, a weak one, all the same: "
            "plain training is shipped where it does not."
        )
    if "config" not in description:  # of a version whose scans could not be gone on from
        path = path.with_name(f"{path.name}-run")
    named = ("--findings", ",".join(ranks))
    return [Step(text=text, command=run_command(path, description, named), said=not found)]


def run_command(path: Path, description: Mapping[str, Any], extra: Sequence[str] = ()) -> str:
    """The command line that makes this run: preset, seed, backbone, and every other setting that
    differs from the preset's."""
    data, config = {"name": "", **description.get("data", {})}, description.get("config", {})
    name = str(data["name"])
    place = str(data.get("path") or (name if name in EMBEDDED_SETS else "DATA"))
    options = Place.from_record({**data, "path": place}).options()
    words = ["d2cp", "run", place, *options, "--out", str(path)]
    for option in NAMED_OPTIONS:
        if option in config:
            words += [f"--{option}", str(config[option])]
    if config.get("preset") in preset_names():
        usual = load_config(config["preset"]).to_dict()
        for assignment in _differences(usual, config):
            words += ["--set", assignment]
    return shlex.join([*words, *extra])


def _differences(usual: Mapping[str, Any], config: Mapping[str, Any], where: str = "") -> list[str]:
    """`stage.key=value` for what is not as usual; JSON's values are TOML's, but for null."""
    found = []
    for key, value in config.items():
        name = f"{where}{key}"
        before = usual.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            found += _differences(before, value, f"{name}.")
        elif value != before and value is not None and name not in NAMED_OPTIONS:
            found.append(f"{name}={json.dumps(value)}")
    return found


def corrected_command(data: ReportData) -> str:
    """The run again with what a person saved from the report: the concepts are kept, mining and
    all that follows is done anew."""
    named = () if data.finding is None else data.finding.named
    return run_command(data.run, data.description, (*named, "--corrections", "corrections.json"))


def collect_more(data: ReportData) -> str:
    """Which class × value the training set lacks most, in one sentence, or nothing."""
    if data.finding is None or data.finding.verdict == "none" or "train" not in data.cells:
        return ""
    cells = data.cells["train"]
    against = _against(cells, data.typical)
    if not against:
        return ""
    y, value = min(against, key=lambda cell: (int(cells[cell]), cell))
    sentence = (
        f"Collect more images of class {data.class_names[y]} with {data.values[value].text}: "
        f"only {int(cells[y, value]):,} of {int(cells.sum()):,} training images are of this kind"
    )
    right = _right_in_cell(data, y, value)
    return f"{sentence}{right}."


def _against(cells: Ints, typical: Ints) -> list[tuple[int, int]]:
    """Cells in which the value is not the class's usual one, of classes that have images."""
    return [
        (y, v)
        for (y, v), _ in np.ndenumerate(cells)
        if v != int(typical[y]) and cells[y].sum() and cells[:, v].sum()
    ]


def _right_in_cell(data: ReportData, y: int, value: int) -> str:
    rows = data.rows
    chosen = rows.answered & (rows.y == y) & (rows.pseudo == value)
    if data.headline is None or not chosen.any():
        return ""
    chosen &= rows.split == data.headline.split
    if not chosen.any():
        return ""
    right = percent(float((rows.after[chosen] == y).mean()))
    split = SPLIT_WORDS.get(data.headline.split, data.headline.split)
    return f", and D2CP answers {right} of such {split} images right"
