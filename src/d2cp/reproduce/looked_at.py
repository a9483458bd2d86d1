"""A cell of the Grad-CAM figure: where a trained model looks, as a share inside a mask."""

from __future__ import annotations

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
from d2cp.debias.logits import image_logits
from d2cp.debias.trained_files import load_artifact
from d2cp.disentangle.canvas import Grid, save_png
from d2cp.evaluate.gradcam import class_maps, overlay
from d2cp.evaluate.saliency import area, mass_inside
from d2cp.pipeline.context import Context
from d2cp.reproduce.cells import Cell
from d2cp.reproduce.masks import masked_rows, masks_of
from d2cp.reproduce.shared import Shared

IMAGES, BATCH, SHOWN = 256, 64, 8


def saliency_cell(cell: Cell, shared: Shared, folder: Path) -> dict[str, Any]:
    """Maps of the class that the model answers, on test images that have a mask."""
    context = shared.context_of(cell)
    device = process_state().device
    backbone = load_backbone(cell.config.backbone).to(device)
    model = load_artifact(cell.training.folder).trained.classifier().to(device)
    split, rows = _rows(context, cell.data.masks)
    store = context.images(cell.config.debias.resize)
    shares, areas = [], []
    pictures: list[tuple[Pixels, Pixels]] = []
    for start in range(0, len(rows), BATCH):
        part = rows[start : start + BATCH]
        images = centre_view(store[part], cell.config.debias.image_size).to(device)
        with torch.no_grad():
            answers = image_logits(model, backbone, images).argmax(1)
        maps = class_maps(backbone, model, images, answers).cpu()
        masks = masks_of(context, cell.data.masks, part)
        shares.append(mass_inside(maps.double(), masks))
        areas.append(area(masks))
        for image, heat in list(zip(images.cpu(), maps, strict=True))[: SHOWN - len(pictures)]:
            pixels = (image * 255).round().byte().permute(1, 2, 0).numpy()
            pictures.append((pixels, np.asarray(overlay(pixels, heat.numpy()))))
    inside = torch.cat(shares)
    known = ~torch.isnan(inside)
    _draw(cell.row.name, pictures, folder / "maps.png")
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
        "pictures": [{"file": "maps.png", "title": f"{cell.row.name}, seed {cell.seed}"}],
    }


def _rows(context: Context, masks: Path | None) -> tuple[str, Rows]:
    """The same images for every model and seed."""
    table = context.table
    split = "test_balanced" if len(table.rows("test_balanced")) else "test"
    rows = masked_rows(context, masks, table.rows(split))
    chosen = numpy_generator(0, "reproduce/saliency").permutation(rows)[:IMAGES]
    return split, np.sort(chosen)


def _draw(name: str, pictures: list[tuple[Pixels, Pixels]], path: Path) -> None:
    columns = [""] * len(pictures)
    rows = [
        ("image", [pixels for pixels, _ in pictures]),
        (name, [heat for _, heat in pictures]),
    ]
    note = "Blue: the place had no part in the answer. Yellow: it spoke for it most."
    save_png(Grid(f"Grad-CAM of {name}", note, columns, rows).draw(), path)
