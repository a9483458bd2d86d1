"""Frozen, prompt-free features of every row: computed once for a run, or for all seeds of a
comparison; read by XRM and the rivals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save

from d2cp.backbone import Backbone, load_backbone
from d2cp.core.device import process_state
from d2cp.core.files import write_bytes
from d2cp.core.parts import in_parts, working
from d2cp.core.processes import from_main, in_shares, is_main, process_count, process_rank
from d2cp.core.progress import progress
from d2cp.data.pixels import centre_view
from d2cp.data.store import ImageStore
from d2cp.errors import RunError
from d2cp.pipeline.context import Context
from d2cp.pipeline.sibling_features import take_over

FILE = "features.safetensors"
BATCH = 256


def frozen_features(
    backbone: Backbone,
    store: ImageStore,
    rows: NDArray[np.int64],
    image_size: int,
    *,
    batch: int = BATCH,
    quiet: bool = False,
) -> torch.Tensor:
    """CLS features [n, D] of the centre crops, on the CPU."""
    device = process_state().device
    backbone.to(device)
    steps = len(range(process_rank() * batch, len(rows), process_count() * batch))
    crew = working(batch * 3 * image_size**2)
    with progress(steps, "features", quiet=quiet) as bar, crew:

        def of_images(images: torch.Tensor) -> torch.Tensor:
            return backbone.features(backbone.normalise(images))

        def features(part: slice) -> torch.Tensor:
            images = centre_view(store[rows[part]], image_size).to(device)
            bar.step(len(images))
            return in_parts(of_images, [images])

        return in_shares(features, len(rows), batch, (backbone.width,)).cpu()


def features(context: Context) -> torch.Tensor:
    """Features [N, D] of the run's table."""
    config = context.config
    inputs = context.inputs("features")

    def make(folder: Path) -> None:
        sibling = from_main(take_over(context, FILE, folder) if is_main() else None)
        if sibling:
            context.say(f"features: those of {sibling}, which no seed changes")
            return
        store = context.images(config.debias.resize)
        rows = np.arange(len(context.table))
        values = frozen_features(
            load_backbone(config.backbone, config.debias.keep_patches),
            store,
            rows,
            config.debias.image_size,
            quiet=context.quiet,
        )
        write_bytes(folder / FILE, save({"features": values}))

    return load_features(context.stage("features", inputs, make))


def load_features(folder: Path) -> torch.Tensor:
    try:
        values: torch.Tensor = load_file(folder / FILE)["features"]
    except (SafetensorError, OSError, KeyError) as error:
        raise RunError(
            f"{folder / FILE} cannot be read: {error}",
            remedy=f"delete {folder} and run again; other stages are kept",
        ) from error
    return values
