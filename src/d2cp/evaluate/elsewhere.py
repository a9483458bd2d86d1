"""A run's models on another data set with the same classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from d2cp.core.run_directory import RunDirectory
from d2cp.data.image_access import load_images
from d2cp.data.table import SPLIT_NAMES, Table
from d2cp.debias.labels import selection_used
from d2cp.debias.logits import predict_logits
from d2cp.debias.trained_files import load_artifact
from d2cp.errors import DataError
from d2cp.evaluate.result import score

METHODS = {"erm": "erm", "debias": "d2cp"}


def evaluate_elsewhere(
    run: RunDirectory, table: Table, *, cache_dir: Path | None = None, quiet: bool = False
) -> list[dict[str, Any]]:
    """Results on the test splits of `table`, or on all its images where it has no test split."""
    if not any(run.has(stage) for stage in METHODS):
        run.artifact("debias")  # says what is missing and what to do
    results = []
    for stage, method in METHODS.items():
        if not run.has(stage):
            continue
        artifact = load_artifact(run.artifact(stage))
        config, backbone = artifact.trained.config, artifact.load_backbone()
        matched = match_classes(table, artifact.class_names)
        readable, store = load_images(matched, config.resize, cache_dir, quiet=quiet)
        names = [n for n in readable.split_names if n.startswith("test")]
        for split in names or ["all"]:
            rows = readable.rows(split) if names else np.arange(len(readable))
            logits = predict_logits(
                artifact.trained.classifier(), backbone, store, rows, image_size=config.image_size
            )
            groups = readable.y if readable.a is None else readable.groups()
            train = groups[readable.split == SPLIT_NAMES.index("train")]
            result = score(
                logits.argmax(1),
                readable.y[rows],
                None if readable.a is None else readable.a[rows],
                readable.n_values,
                train,
                method=method,
                seed=artifact.trained.seed,
                split=split,
                selection=selection_used(config),
                grouping="true",
                class_names=readable.class_names,
                attribute_names=readable.attribute_names,
            )
            results.append(result.to_dict())
    return results


def match_classes(table: Table, class_names: tuple[str, ...]) -> Table:
    """The table with the classes numbered as the model numbers them."""
    import dataclasses

    unknown = sorted(set(table.class_names) - set(class_names))
    if unknown:
        raise DataError(
            f"{table.name!r} has a class {unknown[0]!r} that the model does not know",
            expected="classes among " + ", ".join(class_names),
            remedy="rename the classes of the data set, or train on it",
        )
    index = np.array([class_names.index(name) for name in table.class_names], dtype=np.int64)
    return dataclasses.replace(
        table, y=index[table.y], class_names=class_names, expected_counts=None
    )
