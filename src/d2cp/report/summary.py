"""What a run has to say, as one documented mapping (`d2cp show RUN --json`).

Keys, stable under `schema` 1; what a run does not have is absent:
    schema, data {name, class_names, attribute_names, counts {split: {"y,a": n}}, warnings, notes},
    findings [{rank, name, lens, lenses, outcome, strength, p_value, agreement, value_names,
               threshold, stability, evidence, reasons}],
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
            lean {usual, unusual, error, little}},
    stages {stage: its summary, where it has one}, seconds {stage: s}
`grouping` tells what the groups are: `true`, `pseudo` (suspected) or `class`. Attribute names,
recall and balanced accuracy are there only where the data set names true attributes. `choice` is
which classifier `d2cp export` ships, by validation's mined groups; without a control there is none.
`gap` is the error rate against a finding minus that with it, `rise` whether it grew.
"""

from __future__ import annotations

from typing import Any

from d2cp.core.files import read_json
from d2cp.core.run_directory import SCHEMA, RunDirectory
from d2cp.pipeline.stages import STAGES

STAGE_ONE = ("scan", "disentangle", "mine")


def summarise(run: RunDirectory) -> dict[str, Any]:
    whole: dict[str, Any] = {"schema": SCHEMA}
    if run.has("data"):
        data = read_json(run.file("data", "summary.json"))
        kept = ("name", "class_names", "attribute_names", "counts", "warnings", "notes")
        whole["data"] = {key: data[key] for key in kept if key in data}
    if run.has("scan"):
        found = read_json(run.path / "scan" / "findings.json")
        whole |= {key: found[key] for key in ("findings", "review") if key in found}
        if (run.path / "scan" / "predictions.json").is_file():
            whole["predictions"] = read_json(run.path / "scan" / "predictions.json")
    if run.has("mine"):
        whole["discover"] = _discover(run)
    results = []
    if run.has("evaluate"):
        results += read_json(run.file("evaluate", "results.json"))
        for name in ("choice", "reliance"):
            if (run.path / "evaluate" / f"{name}.json").is_file():
                whole[name] = read_json(run.file("evaluate", f"{name}.json"))
    if (run.path / "compare.json").is_file():
        results += read_json(run.path / "compare.json")["results"]
    if results:
        whole["results"] = results
    there = [stage for stage in STAGES if run.has(stage.name)]
    whole["stages"] = {s.name: read_json(run.file(s.name, s.summary)) for s in there if s.summary}
    whole["seconds"] = {s.name: run.manifest(s.name)["seconds"] for s in there}
    return whole


def _discover(run: RunDirectory) -> dict[str, Any]:
    found = read_json(run.file("mine", "summary.json"))
    seconds = sum(run.manifest(s)["seconds"] for s in STAGE_ONE if run.has(s))
    keep = (
        *("verdict", "sentence", "concepts", "recall", "balanced_accuracy", "warnings"),
        *("findings", "value_names", "merged", "mined"),
    )
    return {**{k: found[k] for k in keep if k in found}, "seconds": round(seconds, 2)}
