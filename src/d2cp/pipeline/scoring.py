"""Both models scored by group, every prediction kept, and what they looked at drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from d2cp.backbone import Backbone, load_backbone
from d2cp.core.arrays import UNKNOWN, Ints
from d2cp.core.device import process_state
from d2cp.core.files import write_csv, write_json
from d2cp.core.processes import is_main
from d2cp.data.pixels import centre_view
from d2cp.data.table import SPLIT_NAMES
from d2cp.debias.adapters import AdapterClassifier
from d2cp.debias.evidence import Evidence, load_evidence
from d2cp.debias.labels import rule_name
from d2cp.debias.logits import predict_logits
from d2cp.debias.loop import require_finite_answers
from d2cp.debias.trained_files import Artifact
from d2cp.evaluate.choice import Choice, choose
from d2cp.evaluate.gradcam import changed_rows, write_gradcam
from d2cp.evaluate.paired import Gain, paired_gain
from d2cp.evaluate.reliance import reliance
from d2cp.evaluate.result import Grouping, score
from d2cp.pipeline.context import Context
from d2cp.pipeline.discovered import Discovery
from d2cp.pipeline.frozen_features import load_features
from d2cp.pipeline.model_flips import METHOD, add_transplants
from d2cp.scan.finding import Scan
from d2cp.scan.scanned_rows import ScannedRows

CHOICE, RELIANCE = "choice.json", "reliance.json"


def evaluate(context: Context, found: Discovery, models: dict[str, Artifact]) -> Path:
    """`results.json`, `predictions.csv`; where there are findings, how far the models lean on each
    (`reliance.json`); where there is a control, which of the two is recommended (`choice.json`)
    and Grad-CAM pairs."""
    config = context.config
    left_out = {"erm", "debias"} - models.keys() | ({"scan"} if found.scan is None else set())
    inputs = context.inputs("evaluate", without=left_out)

    def make(folder: Path) -> None:
        table = context.table
        backbone = load_backbone(config.backbone, config.debias.keep_patches)
        backbone.to(process_state().device)
        rows = np.flatnonzero(table.split != SPLIT_NAMES.index("train"))
        shares = {
            METHOD[stage]: _probabilities(context, backbone, artifact, rows)
            for stage, artifact in models.items()
        }
        answers = {name: p.argmax(1) for name, p in shares.items()}
        rules = {METHOD[k]: rule_name(model.trained.config) for k, model in models.items()}
        write_json(folder / "results.json", _results(context, found, rows, answers, rules))
        _write_predictions(folder / "predictions.csv", context, found, rows, shares)
        if found.scan is not None:
            whole = {name: _of_all(context, rows, p) for name, p in answers.items()}
            relied = _reliance(context, found, found.scan, whole)
            add_transplants(relied, context, found.scan, backbone, models, whole)
            write_json(folder / RELIANCE, relied)
        if len(models) == 2 and is_main():
            choice = _choice(context, found, rows, answers)
            write_json(folder / CHOICE, choice.to_dict())
            context.say("\n".join(choice.sentences))
            _draw_changes(context, backbone, found, models, rows, answers, folder / "gradcam")

    return context.stage("evaluate", inputs, make)


def _probabilities(
    context: Context, backbone: Backbone, artifact: Artifact, rows: Ints
) -> NDArray[np.float64]:
    config, classifier = context.config.debias, artifact.trained.classifier()
    if isinstance(classifier, AdapterClassifier):
        logits = _of_features(classifier, load_features(context.run.path / "features"), rows)
    else:
        store = context.images(config.resize)
        classifier.to(process_state().device)
        logits = predict_logits(classifier, backbone, store, rows, image_size=config.image_size)
    require_finite_answers(logits, artifact.trained.config)
    logits = logits.astype(np.float64)
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares: NDArray[np.float64] = shifted / shifted.sum(axis=1, keepdims=True)
    return shares


def _of_features(
    classifier: AdapterClassifier, features: torch.Tensor, rows: Ints
) -> NDArray[np.float32]:
    """The backbone has seen these images already."""
    with torch.no_grad():
        logits = classifier(features[torch.from_numpy(rows)])
    return np.asarray(logits.numpy(), dtype=np.float32)


def _results(
    context: Context,
    found: Discovery,
    rows: Ints,
    answers: dict[str, Ints],
    rules: dict[str, str],
) -> list[dict[str, Any]]:
    """Every method on every test split, by true groups where known, else by mined ones."""
    table, config = context.table, context.config
    grouping: Grouping = "pseudo" if table.a is None else "true"
    attribute = found.pseudo if table.a is None else table.a
    values = found.values if table.a is None else table.n_values
    train = table.rows("train")
    results = []
    for split in table.split_names:
        if split in ("train", "val"):
            continue
        inside = table.split[rows] == SPLIT_NAMES.index(split)
        these = rows[inside]
        for method, predicted in answers.items():
            result = score(
                predicted[inside],
                table.y[these],
                attribute[these],
                values,
                values * table.y[train] + attribute[train],
                method=method,
                seed=config.seed,
                split=split,
                selection=rules[method],
                grouping=grouping,
                class_names=table.class_names,
                attribute_names=table.attribute_names,
                value_names=found.summary.get("value_names", ()),
            )
            results.append(result.to_dict())
    return results


def _of_all(context: Context, rows: Ints, predicted: Ints) -> Ints:
    """Predictions of every row, UNKNOWN where there is none."""
    whole = np.full(len(context.table), UNKNOWN, dtype=np.int64)
    whole[rows] = predicted
    return whole


def _reliance(
    context: Context, found: Discovery, scan: Scan, whole: dict[str, Ints]
) -> dict[str, Any]:
    table = context.blind
    known = ScannedRows(table.ids.tolist(), table.y, table.split, tuple(table.class_names))
    return reliance(whole, known, scan.findings, found.summary.get("findings", ()))


def _choice(context: Context, found: Discovery, rows: Ints, answers: dict[str, Ints]) -> Choice:
    """By the evidence of the searches on frozen features, else by validation images; by mined
    values in either case."""
    table = context.blind
    held = load_evidence(context.run.path / "debias")
    if held is not None:
        images = "images that the models behind these figures were not trained on"
        y = table.y[held.rows]
        return choose(held.erm, held.d2cp, y, held.against, images, _exchanged(held, table.y))
    inside = table.split[rows] == SPLIT_NAMES.index("val")
    these, train = rows[inside], table.rows("train")
    counts = np.zeros((table.n_classes, found.values), np.int64)
    np.add.at(counts, (table.y[train], found.pseudo[train]), 1)
    unusual = (found.pseudo != counts.argmax(axis=1)[table.y])[these].astype(np.float64)
    right = {n: (a[inside] == table.y[these]).astype(np.float64) for n, a in answers.items()}
    return choose(right["erm"], right["d2cp"], table.y[these], unusual)


def _exchanged(held: Evidence, y: Ints) -> Gain | None:
    """The gain where images with their class's usual value are shown with the other one, too."""
    if not len(held.exchanged):
        return None
    every = np.concatenate([held.rows, held.exchanged])
    side = np.concatenate([held.against, np.ones(len(held.exchanged))])
    before = np.concatenate([held.erm, held.erm_exchanged])
    return paired_gain(before, np.concatenate([held.d2cp, held.d2cp_exchanged]), y[every], side)


def _write_predictions(
    path: Path,
    context: Context,
    found: Discovery,
    rows: Ints,
    shares: dict[str, NDArray[np.float64]],
) -> None:
    table = context.table
    header = ["row", "id", "split", "y", "pseudo", *(["a"] if table.a is not None else [])]
    header += [column for name in shares for column in (name, f"{name}_p")]

    def line(position: int, row: int) -> list[Any]:
        truth = [] if table.a is None else [table.a[row]]
        cells: list[Any] = [row, table.ids[row], SPLIT_NAMES[table.split[row]], table.y[row]]
        cells += [found.pseudo[row], *truth]
        for p in shares.values():
            cells += [int(p[position].argmax()), f"{p[position].max():.4f}"]
        return cells

    write_csv(path, header, (line(i, int(row)) for i, row in enumerate(rows)))


def _draw_changes(
    context: Context,
    backbone: Backbone,
    found: Discovery,
    models: dict[str, Artifact],
    rows: Ints,
    answers: dict[str, Ints],
    folder: Path,
) -> None:
    """Grad-CAM before and after, of validation and test images whose answer changed."""
    table, size = context.table, context.config.debias.image_size
    chosen = changed_rows(table.y[rows], answers["erm"], answers["d2cp"], found.pseudo[rows])
    if not len(chosen):
        return
    store = context.images(context.config.debias.resize)
    images = centre_view(store[rows[chosen]], size)
    pixels = (images * 255).round().byte().permute(0, 2, 3, 1).numpy()
    records = [
        {
            "row": int(rows[i]),
            "id": str(table.ids[rows[i]]),
            "y": int(table.y[rows[i]]),
            "pseudo": int(found.pseudo[rows[i]]),
            "erm": int(answers["erm"][i]),
            "d2cp": int(answers["d2cp"][i]),
        }
        for i in chosen
    ]
    device = process_state().device
    before, after = (models[s].trained.classifier().to(device) for s in ("erm", "debias"))
    write_gradcam(folder, backbone, before, after, images.to(device), pixels, records)
