"""What a run has to say, as one documented mapping (`d2cp show RUN --json`).

Keys, stable under `schema` 1; what a run does not have is absent:
    schema, data {name, class_names, attribute_names, counts {split: {"y,a": n}}, warnings, notes},
    findings [{rank, name, lens, lenses, outcome, strength, p_value, agreement, value_names,
               threshold, stability, evidence, reasons; of `scan --words` also words {images,
               values [{value, chance, words [{word, score, beyond_chance}]}], sentence}}],
    review {copies [{image, split, copy_of, copy_split, same_class}], copies_total,
            labels [{image, split, class, looks_like, sureness}], labels_total},
    predictions {file, column, images, splits, accuracy, findings [{rank, name, gap, interval,
                 leans, classes, victims [{image, split, class, predicted}], sentence}]},
    discover {verdict, sentence, concepts, recall {split: {"y,a": r}}, balanced_accuracy {split: r},
              warnings, seconds; of findings also: findings [rank], value_names,
              merged [{class, value, into, images}], mined (what CBCM says beside them)},
    reliance {images, splits, findings [{rank, name, used, erm {gap, interval, leans, victims},
              d2cp {…}, change, change_interval, rise, beyond_chance, sentence}]},
    results [{method, seed, split, selection, grouping, the columns of `evaluate.columns`,
              groups {"y,a": {name, n, accuracy}}, intervals {column: [low, high]}}],
    choice {model: "d2cp" | "erm", sentences, erm {worst_group, group_mean, error}, d2cp {…},
            gain {worst_group, low, high, mean, surely}, lean {usual, unusual, error, little}},
    stages {stage: its summary, where it has one}, seconds {stage: s}
`grouping` tells what the groups are: `true`, `pseudo` (suspected) or `class`. Attribute names,
recall and balanced accuracy are there only where the data set names true attributes. `choice` is
which classifier `d2cp export` ships, by mined groups of held-out images; without a control there is
none.
`gap` is the error rate against a finding minus that with it, `rise` whether it grew.
"""

from __future__ import annotations

from typing import Any

from d2cp.core.records import (
    AnswersRecord,
    ComparisonRecord,
    DataSummary,
    MineSummary,
    RelianceRecord,
    ResultRecord,
    ScanRecord,
)
from d2cp.core.run_directory import SCHEMA, RunDirectory
from d2cp.core.typed_json import read_typed
from d2cp.evaluate.choice import read_choice
from d2cp.pipeline.stages import STAGES

STAGE_ONE = ("scan", "disentangle", "mine")


def summarise(run: RunDirectory) -> dict[str, Any]:
    whole: dict[str, Any] = {"schema": SCHEMA}
    if run.has("data"):
        data = dict(run.read("data", "summary.json", DataSummary))
        kept = ("name", "class_names", "attribute_names", "counts", "warnings", "notes")
        whole["data"] = {key: data[key] for key in kept if key in data}
    if run.has("scan"):
        found = run.read("scan", "findings.json", ScanRecord)
        whole |= {"findings": found["findings"], "review": found["review"]}
        if answers := read_answers(run):
            whole["predictions"] = answers
    if run.has("mine"):
        whole["discover"] = _discover(run)
    results: list[Any] = []
    if run.has("evaluate"):
        results += run.read("evaluate", "results.json", list[ResultRecord])
        if choice := read_choice(run):
            whole["choice"] = choice
        if relied := read_reliance(run):
            whole["reliance"] = relied
    if (run.path / "compare.json").is_file():
        results += read_comparison(run)["results"]
    if results:
        whole["results"] = results
    there = [stage for stage in STAGES if run.has(stage.name)]
    whole["stages"] = {
        s.name: run.read(s.name, s.summary, dict[str, Any]) for s in there if s.summary
    }
    whole["seconds"] = {s.name: run.manifest(s.name)["seconds"] for s in there}
    return whole


def read_reliance(run: RunDirectory) -> RelianceRecord | None:
    """How far the models rely on each finding; None where the run did not start from a scan."""
    if not run.has("evaluate") or "reliance.json" not in run.manifest("evaluate")["files"]:
        return None
    return run.read("evaluate", "reliance.json", RelianceRecord)


def read_answers(run: RunDirectory) -> AnswersRecord | None:
    """What a scan said of a model's predictions, if it was asked: written beside the stage."""
    path = run.path / "scan" / "predictions.json"
    if not path.is_file():
        return None
    remedy = f"delete {path}, or scan again with --predictions"
    return read_typed(path, AnswersRecord, remedy=remedy)


def read_comparison(run: RunDirectory) -> ComparisonRecord:
    remedy = "give the same `d2cp compare` command again: finished cells are kept"
    return read_typed(run.path / "compare.json", ComparisonRecord, remedy=remedy)


def _discover(run: RunDirectory) -> dict[str, Any]:
    found = dict(run.read("mine", "summary.json", MineSummary))
    seconds = sum(run.manifest(s)["seconds"] for s in STAGE_ONE if run.has(s))
    keep = (
        *("verdict", "sentence", "concepts", "recall", "balanced_accuracy", "warnings"),
        *("findings", "value_names", "merged", "mined"),
    )
    return {**{k: found[k] for k in keep if k in found}, "seconds": round(seconds, 2)}
