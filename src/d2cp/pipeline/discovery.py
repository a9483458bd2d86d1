"""Stage 1: from images and labels to a pictured finding and a pseudo attribute for every image."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from d2cp.core.arrays import Ints
from d2cp.core.device import process_state
from d2cp.core.files import write_json
from d2cp.core.progress import progress
from d2cp.core.text import visible
from d2cp.disentangle.concept_files import load_concepts, load_model, save_concepts, save_model
from d2cp.disentangle.concept_training import train_concepts
from d2cp.disentangle.extract import extract
from d2cp.mine import Mined, apply, mine, save_mined
from d2cp.mine.quality import score_against_truth
from d2cp.pipeline.context import Context
from d2cp.pipeline.corrections import Corrections, load_corrections
from d2cp.pipeline.discovered import SUMMARY, Discovery, load_discovery, write_labels
from d2cp.pipeline.finding_attribute import all_found, attribute_of, chosen
from d2cp.pipeline.finding_pictures import Movable, draw_pictures
from d2cp.pipeline.recolouring import recolouring, save_recolouring
from d2cp.pipeline.scanning import scan_stage
from d2cp.scan.as_concepts import finding_scalars
from d2cp.scan.finding import Scan


def discover(
    context: Context, corrections: Path | None = None, findings: Sequence[int] = ()
) -> Discovery:
    """Scan where the configuration or `findings` ask for it, disentangle, then mine; a person's
    corrections take effect from mining on. With `findings` the groups are theirs: there is
    nothing to disentangle."""
    corrected = load_corrections(corrections) if corrections is not None else None
    used = context.config.scan.use or bool(findings)
    found = scan_stage(context) if used else None
    if corrected is not None:
        corrected.check(
            fingerprint=context.run.description["data"]["fingerprint"],
            ids=context.table.ids.tolist(),
            concepts=context.config.disentangle.concepts,
            ranks=[f.rank for f in found.findings] if found is not None else [],
        )
    if found is not None and findings:
        made = _of_findings(context, found, findings, corrected)
    else:
        made = _mined(context, found, disentangle(context, found), corrected)
    return dataclasses.replace(made, scan=found)


def disentangle(context: Context, found: Scan | None) -> Path:
    """Train the concept model and store every row's scalars and tokens."""
    config, table = context.config.disentangle, context.blind
    inputs = context.inputs("disentangle", without=_without(found))
    train = table.rows("train")
    given = None if found is None else finding_scalars(found, train, _most(context))[0]

    def make(folder: Path) -> None:
        store = context.images(config.size)
        model = train_concepts(
            store,
            train,
            table.y[train],
            config,
            context.config.seed,
            checkpointer=context.checkpointer("disentangle", inputs),
            progress=partial(progress, quiet=context.quiet),
            log=context.log,
            given=given,
        )
        save_model(model, folder)
        rows = np.arange(len(table))
        save_concepts(extract(model, store, rows), rows, folder)

    return context.stage("disentangle", inputs, make)


def _without(found: Scan | None) -> set[str]:
    return {"scan"} if found is None else set()


def _most(context: Context) -> int:
    return min(context.config.scan.concepts, context.config.disentangle.concepts // 4)


def _excluded(context: Context, found: Scan | None, corrected: Corrections | None) -> list[int]:
    """Concepts that are not mined: by configuration, by a person, or as scores of a finding that
    a person called the class itself."""
    excluded = {*context.config.mine.exclude}
    if corrected is None:
        return sorted(excluded)
    excluded |= {*corrected.concepts_are_class}
    if found is not None:
        _, ranks = finding_scalars(found, context.table.rows("train"), _most(context))
        first = context.config.disentangle.concepts - len(ranks)
        denied = corrected.findings_are_class
        excluded |= {first + i for i, rank in enumerate(ranks) if rank in denied}
    return sorted(excluded)


def _movable(context: Context, found: Scan | None) -> list[Movable]:
    """The findings whose scores are concepts, for edits of the photos."""
    if found is None:
        return []
    _, ranks = finding_scalars(found, context.table.rows("train"), _most(context))
    first = context.config.disentangle.concepts - len(ranks)
    made = []
    for finding in found.findings:
        own = tuple(first + i for i, rank in enumerate(ranks) if rank == finding.rank)
        if own:
            named = visible(f"finding {finding.rank} ({finding.name})")
            words = tuple(visible(name) for name in finding.value_names)
            made.append(Movable(named, f"edit-{finding.rank}", own, finding.value, words))
    return made


def _mined(
    context: Context, found: Scan | None, concepts: Path, corrected: Corrections | None
) -> Discovery:
    """CBCM over all concepts; the pseudo attribute is that of the findings that are found, where
    there are any."""
    excluded = _excluded(context, found, corrected)
    config = dataclasses.replace(context.config.mine, exclude=tuple(excluded))
    recolour = context.config.debias.recolour and found is None
    details = [*_details(excluded, corrected), *(["recolour"] if recolour else [])]
    inputs = context.inputs("mine", details, without=_without(found))

    def make(folder: Path) -> None:
        table = context.blind
        known, _ = load_concepts(concepts)
        train = table.rows("train")
        mined = mine(
            known.tokens[train],
            table.y[train],
            config,
            context.config.seed,
            scalars=known.scalars[train],
        )
        pseudo, mined_score = apply(mined, known.tokens, known.scalars)
        score, summary = mined_score, _summary(mined)
        findings = [] if found is None else all_found(found, corrected)
        if findings:
            made = attribute_of(findings, table, corrected)
            summary = {**made.summary, "concepts": summary["concepts"], "mined": summary}
            if mined.values == len(made.summary["value_names"]) == table.n_classes == 2:
                same = np.mean(pseudo[train] == made.pseudo[train])
                summary["mined"]["same_value"] = float(same)
            pseudo, score = made.pseudo, made.score
        elif corrected is not None:
            pseudo = corrected.flipped(pseudo, table.ids.tolist(), mined.values)
        save_mined(mined, folder)
        write_labels(folder, context, pseudo, score)
        model = load_model(concepts).to(process_state().device)
        pictures = draw_pictures(
            context,
            model,
            mined,
            known.scalars,
            mined_score,
            pseudo,
            folder,
            _movable(context, found),
        )
        if recolour:
            store, seed = context.images(context.config.disentangle.size), context.config.seed
            turned = recolouring(model, mined, store, train, pseudo, known.scalars, seed)
            if turned is not None:
                save_recolouring(turned, folder)
        summary |= _against_truth(context, pseudo, known.scalars)
        summary |= {"corrected": _flips(corrected), "pictures": pictures}
        write_json(folder / SUMMARY, summary)

    return load_discovery(context.stage("mine", inputs, make, alone=True))


def _of_findings(
    context: Context, found: Scan, ranks: Sequence[int], corrected: Corrections | None
) -> Discovery:
    """The named findings' values are the pseudo attribute."""
    findings = chosen(found, ranks, corrected)
    inputs = context.inputs(
        "mine", ["findings", list(ranks), *_details([], corrected)], without={"disentangle"}
    )
    context.say("disentangle: left out, the groups come from the findings")

    def make(folder: Path) -> None:
        made = attribute_of(findings, context.blind, corrected)
        write_labels(folder, context, made.pseudo, made.score)
        summary = made.summary | _against_truth(context, made.pseudo)
        write_json(folder / SUMMARY, {**summary, "corrected": _flips(corrected), "pictures": []})

    made = load_discovery(context.stage("mine", inputs, make, alone=True))
    for line in made.summary["warnings"]:
        context.say(f"findings: {line}")
    return made


def _details(excluded: list[int], corrected: Corrections | None) -> list[Any]:
    if corrected is None:
        return [excluded, {}]
    of_findings = [list(corrected.findings_are_class), dict(corrected.finding_flip)]
    return [excluded, dict(corrected.flip), *(of_findings if any(of_findings) else [])]


def _flips(corrected: Corrections | None) -> int:
    return 0 if corrected is None else corrected.flips


def _summary(mined: Mined) -> dict[str, Any]:
    """What `d2cp show` and the report say of what was mined."""
    verdict = mined.verdict
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
    return summary


def _against_truth(context: Context, pseudo: Ints, scalars: Any = None) -> dict[str, Any]:
    """Where true attributes are known they score the pseudo attribute, and nothing else."""
    table = context.table
    if table.a is None:
        return {}
    splits = {name: table.rows(name) for name in table.split_names}
    return score_against_truth(pseudo, table.a, table.y, splits, scalars)
