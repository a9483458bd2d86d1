"""A cell of the Grad-CAM figure: where a trained model looks, as a share inside a mask."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import torch

from d2cp.backbone import load_backbone
from d2cp.core.arrays import Bytes as Pixels
from d2cp.core.arrays import Rows
from d2cp.core.device import process_state
from d2cp.core.rng import numpy_generator
from d2cp.data.pixels import centre_view
from d2cp.data.table import Table
from d2cp.debias.logits import image_logits
from d2cp.debias.trained_files import load_artifact
from d2cp.evaluate.gradcam import class_maps, overlay
from d2cp.evaluate.result import group_name
from d2cp.evaluate.saliency import area, mass_inside
from d2cp.pipeline.context import Context
from d2cp.reproduce.cells import Cell
from d2cp.reproduce.masks import masked_rows, masks_of
from d2cp.reproduce.shared import Shared
from d2cp.reproduce.strips import IMAGES, MAPS, save_strip

MEASURED, BATCH, SHOWN = 256, 64, 8


def saliency_cell(cell: Cell, shared: Shared, folder: Path) -> dict[str, Any]:
    """Maps of the class that the model answers, on test images that have a mask."""
    context = shared.context_of(cell)
    device = process_state().device
    backbone = load_backbone(cell.config.backbone, cell.config.debias.keep_patches).to(device)
    model = load_artifact(cell.training.folder).trained.classifier().to(device)
    split, rows = _rows(context, cell.data.masks)
    store = context.images(cell.config.debias.resize)
    shares, areas = [], []
    shown = shown_rows(context.table, rows)
    tiles: dict[int, tuple[Pixels, Pixels]] = {}
    for start in range(0, len(rows), BATCH):
        part = rows[start : start + BATCH]
        images = centre_view(store[part], cell.config.debias.image_size).to(device)
        with torch.no_grad():
            answers = image_logits(model, backbone, images).argmax(1)
        maps = class_maps(backbone, model, images, answers).cpu()
        masks = masks_of(context, cell.data.masks, part)
        shares.append(mass_inside(maps.double(), masks))
        areas.append(area(masks))
        for row, image, heat in zip(part.tolist(), images.cpu(), maps, strict=True):
            if row in shown:
                pixels = (image * 255).round().byte().permute(1, 2, 0).numpy()
                tiles[row] = pixels, np.asarray(overlay(pixels, heat.numpy()))
    inside = torch.cat(shares)
    known = ~torch.isnan(inside)
    for name, which in ((IMAGES, 0), (MAPS, 1)):
        save_strip([tiles[row][which] for row in shown], folder / name)
    return {
        "lines": [
            {
                "split": split,
                "figures": {
                    "inside": float(inside[known].mean()) if known.any() else 0.0,
                    "area": float(torch.cat(areas)[known].mean()) if known.any() else 0.0,
                },
            }
        ],
        "images": int(known.sum()),
        "empty_maps": int((~known).sum()),
        "columns": [group_of(context.table, row) for row in shown],
    }


def _rows(context: Context, masks: Path | None) -> tuple[str, Rows]:
    """The same images for every model and seed."""
    table = context.table
    split = "test_balanced" if len(table.rows("test_balanced")) else "test"
    rows = masked_rows(context, masks, table.rows(split))
    chosen = numpy_generator(0, "reproduce/saliency").permutation(rows)[:MEASURED]
    return split, np.sort(chosen)


def shown_rows(table: Table, rows: Rows) -> list[int]:
    """Some of the measured images, taken in turn from every group; the same for every model."""
    groups: dict[str, list[int]] = {}
    for row in rows.tolist():
        groups.setdefault(group_of(table, row), []).append(row)
    turns = [row for turn in zip_longest(*groups.values()) for row in turn if row is not None]
    return sorted(turns[:SHOWN], key=lambda row: group_of(table, row))


def group_of(table: Table, row: int) -> str:
    """The class, and the attribute where it is known, in words."""
    if table.a is None:
        return str(table.class_names[table.y[row]])
    key = f"{table.y[row]},{table.a[row]}"
    return group_name(key, "true", table.class_names, table.attribute_names)
