"""Frozen, prompt-free features of every row: computed once a run, read by XRM and the rivals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file

from d2cp.backbone import Backbone, load_backbone
from d2cp.core.progress import progress
from d2cp.data.pixels import centre_view
from d2cp.data.store import ImageStore
from d2cp.pipeline.context import Context

FILE = "features.safetensors"


def frozen_features(
    backbone: Backbone,
    store: ImageStore,
    rows: NDArray[np.int64],
    image_size: int,
    *,
    batch: int = 256,
    quiet: bool = False,
) -> torch.Tensor:
    """CLS features [n, D] of the centre crops."""
    found = []
    starts = range(0, len(rows), batch)
    with torch.no_grad(), progress(len(starts), "features", quiet=quiet) as bar:
        for start in starts:
            images = centre_view(store[rows[start : start + batch]], image_size)
            found.append(backbone.features(backbone.normalise(images)))
            bar.step(len(images))
    return torch.cat(found) if found else torch.zeros(0, backbone.width)


def features(context: Context) -> torch.Tensor:
    """Features [N, D] of the run's table."""
    config = context.config
    inputs = context.inputs("features")

    def make(folder: Path) -> None:
        store = context.images(config.debias.resize)
        rows = np.arange(len(context.table))
        values = frozen_features(
            load_backbone(config.backbone),
            store,
            rows,
            config.debias.image_size,
            quiet=context.quiet,
        )
        save_file({"features": values}, folder / FILE)

    return load_features(context.stage("features", inputs, make))


def load_features(folder: Path) -> torch.Tensor:
    values: torch.Tensor = load_file(folder / FILE)["features"]
    return values
