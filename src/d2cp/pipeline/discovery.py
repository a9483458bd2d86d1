"""Stage 1: from images and labels to a pictured concept and a pseudo attribute for every image."""

from __future__ import annotations

import csv
import dataclasses
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2cp.core.device import process_state
from d2cp.core.files import read_json, write_csv, write_json
from d2cp.core.progress import progress
from d2cp.data.table import SPLIT_NAMES
from d2cp.disentangle.concept_files import load_concepts, load_model, save_concepts, save_model
from d2cp.disentangle.concept_training import train_concepts
from d2cp.disentangle.extract import extract
from d2cp.mine import Mined, apply, mine, save_mined
from d2cp.mine.quality import score_against_truth
from d2cp.pipeline.context import Context
from d2cp.pipeline.corrections import load_corrections
from d2cp.pipeline.finding_pictures import draw_pictures

LABELS, SUMMARY = "pseudo.csv", "summary.json"


@dataclass(frozen=True)
class Discovery:
    """What stage 1 hands on: one pseudo attribute a row, and the summary with its verdict."""

    pseudo: NDArray[np.int64]
    score: NDArray[np.float64]
    values: int
    summary: dict[str, Any]


def disentangle(context: Context) -> Path:
    """Train the concept model and store every row's scalars and tokens."""
    config, table = context.config.disentangle, context.blind
    inputs = context.inputs("disentangle")

    def make(folder: Path) -> None:
        store = context.images(config.size)
        train = table.rows("train")
        model = train_concepts(
            store,
            train,
            table.y[train],
            config,
            context.config.seed,
            checkpointer=context.checkpointer("disentangle", inputs),
            progress=partial(progress, quiet=context.quiet),
            log=context.log,
        )
        save_model(model, folder)
        rows = np.arange(len(table))
        save_concepts(extract(model, store, rows), rows, folder)

    return context.stage("disentangle", inputs, make)


def discover(context: Context, corrections: Path | None = None) -> Discovery:
    """Disentangle, then mine; a person's corrections take effect from mining on."""
    corrected = load_corrections(corrections) if corrections is not None else None
    concepts = disentangle(context)
    config = context.config.mine
    excluded = sorted(config.exclude)
    if corrected is not None:
        corrected.check(
            fingerprint=context.run.description["data"]["fingerprint"],
            ids=context.table.ids.tolist(),
            concepts=context.config.disentangle.concepts,
        )
        excluded = sorted({*config.exclude, *corrected.concepts_are_class})
        config = dataclasses.replace(config, exclude=tuple(excluded))
    flips = {} if corrected is None else dict(corrected.flip)
    inputs = context.inputs("mine", [excluded, flips])

    def make(folder: Path) -> None:
        table = context.blind
        found, _ = load_concepts(concepts)
        train = table.rows("train")
        mined = mine(
            found.tokens[train],
            table.y[train],
            config,
            context.config.seed,
            scalars=found.scalars[train],
        )
        pseudo, score = apply(mined, found.tokens, found.scalars)
        if corrected is not None:
            pseudo = corrected.flipped(pseudo, table.ids.tolist(), mined.values)
        save_mined(mined, folder)
        _write_labels(folder / LABELS, context, pseudo, score)
        model = load_model(concepts).to(process_state().device)
        pictures = draw_pictures(context, model, mined, found.scalars, score, pseudo, folder)
        summary = _summary(context, mined, pseudo, found.scalars)
        write_json(folder / SUMMARY, {**summary, "corrected": len(flips), "pictures": pictures})

    return load_discovery(context.stage("mine", inputs, make, alone=True))


def load_discovery(folder: Path) -> Discovery:
    with (folder / LABELS).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    summary = read_json(folder / SUMMARY)
    pseudo = np.array([int(r["pseudo"]) for r in rows], dtype=np.int64)
    score = np.array([float(r["score"]) for r in rows], dtype=np.float64)
    return Discovery(pseudo, score, int(summary["values"]), summary)


def _write_labels(
    path: Path, context: Context, pseudo: NDArray[np.int64], score: NDArray[np.float64]
) -> None:
    table = context.table
    write_csv(
        path,
        ["row", "image", "split", "class", "pseudo", "score"],
        (
            (
                row,
                table.ids[row],
                SPLIT_NAMES[table.split[row]],
                table.class_names[table.y[row]],
                int(pseudo[row]),
                f"{score[row]:.6g}",
            )
            for row in range(len(table))
        ),
    )


def _summary(
    context: Context, mined: Mined, pseudo: NDArray[np.int64], scalars: NDArray[np.float32]
) -> dict[str, Any]:
    """What `d2cp show` and the report say of the finding; true attributes only score it."""
    verdict, table = mined.verdict, context.table
    summary: dict[str, Any] = {
        "verdict": verdict.outcome,
        "sentence": verdict.sentence,
        "reasons": list(verdict.reasons),
        "evidence": verdict.evidence,
        "concepts": [int(k) for k in mined.concepts],
        "values": mined.values,
        "warnings": list(mined.warnings),
    }
    if mined.threshold is not None:
        summary["threshold"] = mined.threshold
    if table.a is not None:
        splits = {name: table.rows(name) for name in table.split_names}
        summary |= score_against_truth(pseudo, table.a, table.y, splits, scalars)
    return summary
