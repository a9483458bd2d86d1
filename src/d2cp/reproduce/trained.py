"""A cell that trains: the settings of its row on what the seed shares, scored by true groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from d2cp.backbone import load_backbone
from d2cp.compare.grid import scored
from d2cp.core.arrays import Rows
from d2cp.core.checkpoint import Checkpointer
from d2cp.core.device import process_state
from d2cp.debias.adapters import AdapterClassifier
from d2cp.debias.labels import selection_used
from d2cp.debias.logits import Classifier, predict_logits
from d2cp.debias.trained_files import save_artifact
from d2cp.evaluate.columns import COLUMNS
from d2cp.pipeline.context import Context
from d2cp.pipeline.frozen_features import load_features
from d2cp.pipeline.stage_two import Which, artifact_of, fit_model, labels_of, settings_of
from d2cp.reproduce.cells import Cell
from d2cp.reproduce.shared import Shared


def train_cell(cell: Cell, shared: Shared, folder: Path) -> dict[str, Any]:
    """The model goes to `folder`; what is returned goes to its cell.json."""
    context, debias = shared.context_of(cell), cell.config.debias
    which: Which = "debias" if debias.use_pseudo or debias.use_xrm else "erm"
    settings = settings_of(which, debias)
    labels = labels_of(context, shared.found, shared.bits)
    checkpoints = Checkpointer(cell.checkpoints, cell.identity)
    trained, draws, _ = fit_model(context, which, labels, settings, checkpoints)
    save_artifact(folder, artifact_of(context, labels, trained, draws))
    predictor = _Predictor(context, trained.classifier(), trained.parameters.trained)
    results = scored(
        context.table, predictor, cell.row.key, cell.seed, selection_used(trained.config)
    )
    return {
        "lines": lines_of(results),
        "results": results,
        "steps": trained.fitted.steps,
        "trainable": trained.parameters.trained,
    }


def lines_of(results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One line a split; the table that asks knows the row."""
    return [{"split": r["split"], "figures": {c.key: r[c.key] for c in COLUMNS}} for r in results]


@dataclass(frozen=True)
class _Predictor:
    context: Context
    classifier: Classifier
    trainable: int

    def logits(self, rows: Rows) -> Tensor:
        config, model = self.context.config.debias, self.classifier
        if isinstance(model, AdapterClassifier):
            features = load_features(self.context.run.path / "features")
            with torch.no_grad():
                read: Tensor = model(features[torch.from_numpy(rows)])
            return read
        device = process_state().device
        return torch.from_numpy(
            predict_logits(
                model.to(device),
                load_backbone(self.context.config.backbone, config.keep_patches).to(device),
                self.context.images(config.resize),
                rows,
                image_size=config.image_size,
            )
        )
