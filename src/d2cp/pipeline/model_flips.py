"""The transplant test on the run's own models: which answers change with a finding's cue put in."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from d2cp.backbone import Backbone
from d2cp.core.arrays import Ints
from d2cp.core.device import process_state
from d2cp.core.processes import is_main
from d2cp.data.pixels import centre_crop
from d2cp.data.table import SPLIT_NAMES
from d2cp.debias.adapters import AdapterClassifier
from d2cp.debias.logits import Classifier, image_logits
from d2cp.debias.trained_files import Artifact
from d2cp.evaluate.reliance import transplant_sentence
from d2cp.pipeline.context import Context
from d2cp.scan.finding import Scan
from d2cp.scan.model_transplant import Answer, model_transplants

METHOD = {"erm": "erm", "debias": "d2cp"}
TESTED = 3
"""Findings that are put in, the first ones."""


def add_transplants(
    relied: dict[str, Any],
    context: Context,
    scan: Scan,
    backbone: Backbone,
    models: dict[str, Artifact],
    before: dict[str, Ints],
) -> None:
    """`transplant` for each of the first findings of `relied`, on test images, on validation where
    there are none; None where the cue is not in the pixels. `before` are the models' predictions of
    every row."""
    if not is_main():
        return
    config = context.config.debias
    device = process_state().device
    classifiers = {METHOD[k]: m.trained.classifier().to(device) for k, m in models.items()}
    answer = answering(classifiers, backbone, config.image_size)
    seen = context.images(config.resize)
    rows = _fresh(context)
    for entry, finding in zip(relied["findings"][:TESTED], scan.findings, strict=False):
        moved = model_transplants(scan, finding, seen, rows, before, answer, context.config.seed)
        if moved is not None:
            moved["sentence"] = transplant_sentence(moved, context.table.class_names)
        entry["transplant"] = moved


def answering(classifiers: dict[str, Classifier], backbone: Backbone, image_size: int) -> Answer:
    """Frozen features are computed once for all models that read them."""

    def answer(images: Tensor) -> dict[str, Ints]:
        device = process_state().device
        crops = centre_crop(images, image_size).to(device)
        features: Tensor | None = None
        answers: dict[str, Ints] = {}
        with torch.no_grad():
            for name, classifier in classifiers.items():
                if isinstance(classifier, AdapterClassifier):
                    if features is None:
                        features = backbone.features(backbone.normalise(crops))
                    logits = classifier(features)
                else:
                    logits = image_logits(classifier, backbone, crops)
                answers[name] = logits.argmax(1).cpu().numpy()
        return answers

    return answer


def _fresh(context: Context) -> Ints:
    split = context.table.split
    test = np.flatnonzero(~np.isin(split, [SPLIT_NAMES.index(s) for s in ("train", "val")]))
    return test if len(test) else context.table.rows("val")
