"""Words beside a finished scan: a CLIP reads a person's phrases and some training images."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np

from d2cp.backbone import load_backbone
from d2cp.core.files import fingerprint, read_json, write_bytes, write_json
from d2cp.core.processes import from_main, is_main, main_first, wait_for_all
from d2cp.core.records import ScanRecord, WordsSource
from d2cp.data.image_access import load_images
from d2cp.pipeline.context import Context
from d2cp.pipeline.frozen_features import frozen_features
from d2cp.scan.batched import Doubles, Ints
from d2cp.scan.finding import Scan
from d2cp.scan.finding_words import SETTINGS, rows_for, words_of
from d2cp.scan.photo_pictures import FINDINGS as FIRST
from d2cp.scan.phrases import TEMPLATE, Phrases
from d2cp.scan.scan_files import FINDINGS


def add_words(context: Context, found: Scan, phrases: Phrases) -> Scan:
    """The scan with words under its first findings, on the disk too. What the scan itself wrote
    keeps its bytes and its inputs: stages that read it need not be done again."""
    identity = fingerprint([phrases.identity, SETTINGS])
    record = context.run.read("scan", FINDINGS, ScanRecord) if is_main() else None
    before = from_main(record and record.get("words", {}).get("inputs"))
    if before == identity:
        context.say("words: unchanged, kept")
        return found
    context.say("words: started")
    worded = _worded(context, found, phrases)
    if is_main():
        source: WordsSource = {
            "file": phrases.file,
            "phrases": len(phrases.texts),
            "template": TEMPLATE,
            "backbone": phrases.backbone,
            "inputs": identity,
        }
        _write(context, worded, source)
    wait_for_all()
    return worded


def _worded(context: Context, found: Scan, phrases: Phrases) -> Scan:
    table, seed = context.blind, context.config.seed
    train = table.rows("train")
    first = found.findings[:FIRST]
    chosen = [rows_for(finding, table.y, train, seed) for finding in first]
    rows = np.unique(np.concatenate([train[:0], *chosen]))
    cosines = _cosines(context, rows, phrases)
    made = []
    for finding, own in zip(first, chosen, strict=True):
        near = cosines[np.searchsorted(rows, own)]
        words = words_of(finding, phrases.texts, near, table.y[own], finding.value[own], seed)
        made.append(replace(finding, words=words))
    return replace(found, findings=(*made, *found.findings[FIRST:]))


def _cosines(context: Context, rows: Ints, phrases: Phrases) -> Doubles:
    """[images, phrases]. Whole pictures, as the lenses see them: CLIP's own square from the middle
    would lose the corners."""
    if not len(rows):
        return np.zeros((0, len(phrases.texts)))
    backbone = load_backbone(phrases.backbone)
    side = backbone.image_size
    part = context.table.subset(rows)
    with main_first():
        kept, store = load_images(part, side, context.cache_dir, "stretch", quiet=context.quiet)
    if len(kept) != len(part):
        raise RuntimeError("a row that was readable at one size is not at another")
    features = frozen_features(backbone, store, np.arange(len(rows)), side, quiet=context.quiet)
    text = phrases.vectors()
    cosines: Doubles = (text.embed(features) @ text.vectors.T).double().numpy()
    return cosines


def _write(context: Context, worded: Scan, source: WordsSource) -> None:
    """The stage's folder anew, whole or not at all; what lies beside its own files stays."""
    run = context.run
    old, manifest = run.artifact("scan"), run.manifest("scan")
    own = {"manifest.json", *manifest["files"]}
    beside = {f.name: f.read_bytes() for f in old.iterdir() if f.is_file() and f.name not in own}
    with run.writing("scan", manifest["inputs"], manifest["seconds"]) as folder:
        for name in manifest["files"]:
            _copy(old / name, folder / name)
        whole = read_json(folder / FINDINGS)
        findings = [finding.to_dict() for finding in worded.findings]
        write_json(folder / FINDINGS, {**whole, "findings": findings, "words": source})
    for name, content in beside.items():
        write_bytes(run.path / "scan" / name, content)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
