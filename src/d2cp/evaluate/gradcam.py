"""Grad-CAM of a prompted or adapted ViT: which patches spoke for an answer.

The last block is computed for CLS alone, so patch tokens matter for the last time as its input:
the gradient of the answer reaches them through that block's keys and values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from d2cp.backbone import Backbone, Prefix
from d2cp.core.files import write_json
from d2cp.debias.dual_branch import PromptClassifier
from d2cp.debias.logits import Classifier
from d2cp.debias.prompts import prefixes
from d2cp.disentangle.canvas import save_png

_RAMP = ((16, 18, 66), (43, 84, 153), (45, 160, 160), (170, 210, 90), (255, 240, 90))
_SIDE = 168


def grad_cam(tokens: Tensor, gradients: Tensor, grid: tuple[int, int]) -> Tensor:
    """Patch tokens A and dz/dA [B, N, D] → maps [B, h, w] in [0, 1]: relu(Σ_d g_nd (A_nd − Ā_d)).

    Each patch keeps its own gradient: CLS reads patches unevenly, and a gradient averaged over
    them, right for convolutions, lights up patches that it never read. The mean token, which says
    nothing about place, is taken away. A map without any positive patch is zero."""
    apart = tokens - tokens.mean(dim=1, keepdim=True)
    heat = (gradients * apart).sum(dim=2).relu().reshape(-1, *grid)
    peak = heat.amax(dim=(1, 2), keepdim=True)
    return torch.where(peak > 0, heat / peak.clamp_min(torch.finfo(heat.dtype).tiny), 0.0)


def contrast(logits: Tensor, answers: Tensor) -> Tensor:
    """z_c minus the mean of the other logits: a constant added to all of them says nothing."""
    chosen = logits.gather(1, answers[:, None])[:, 0]
    return chosen - (logits.sum(dim=1) - chosen) / max(1, logits.shape[1] - 1)


def class_maps(backbone: Backbone, model: Classifier, images: Tensor, answers: Tensor) -> Tensor:
    """Maps [B, h, w] of one branch for the classes `answers` [B]; images [B, 3, H, W] in [0, 1]."""
    last = backbone.depth - 1
    pixels = backbone.normalise(images)
    height, width = (side // backbone.patch_size for side in pixels.shape[-2:])
    with torch.no_grad():
        layers: Sequence[Prefix | None] = [None] * backbone.depth
        read: Callable[[Tensor], Tensor] = model
        if isinstance(model, PromptClassifier):
            layers, read = prefixes(backbone, model.prompts), model.head
        x = backbone.embed(pixels)
        kept = torch.arange(height * width, device=x.device).expand(len(x), -1)
        for index in range(last):
            x, places = backbone.block(index, x, layers[index])
            kept = kept if places is None else places
    x.requires_grad_()
    with torch.enable_grad():
        feature = backbone.final_norm(backbone.block(last, x, layers[last])[0])[:, 0]
        (gradient,) = torch.autograd.grad(contrast(read(feature), answers).sum(), x)
    patches = kept.shape[1]  # the tokens before them are CLS and, in some families, registers
    heat = grad_cam(x.detach()[:, -patches:], gradient[:, -patches:], (1, patches)).flatten(1)
    whole = heat.new_zeros(len(heat), height * width)  # what was dropped has not spoken
    return whole.scatter(1, kept, heat).reshape(-1, height, width)


def overlay(image: NDArray[np.uint8], heat: NDArray[np.float32], side: int = _SIDE) -> Image.Image:
    """The image [H, W, 3] in grey under its map [h, w], blue (unused) to yellow (decisive)."""
    enlarge = Image.Resampling.BICUBIC
    grey = np.asarray(Image.fromarray(image).convert("L").resize((side, side), enlarge), np.float32)
    wide = Image.fromarray(heat.astype(np.float32)).resize((side, side), Image.Resampling.BILINEAR)
    warmth = np.clip(np.asarray(wide, np.float32), 0, 1)
    stops = np.linspace(0, 1, len(_RAMP))
    ramp = np.array(_RAMP, np.float32)
    colour = np.stack([np.interp(warmth, stops, ramp[:, c]) for c in range(3)], axis=-1)
    mixed = 0.45 * grey[..., None] + (0.5 + 0.4 * warmth[..., None]) * colour
    return Image.fromarray(mixed.clip(0, 255).round().astype(np.uint8))


def changed_rows(
    y: NDArray[np.int64],
    before: NDArray[np.int64],
    after: NDArray[np.int64],
    pseudo: NDArray[np.int64],
    limit: int = 12,
) -> NDArray[np.int64]:
    """Rows whose answer changed, taken in turn from every (class, pseudo value, mended or not)."""
    changed = np.flatnonzero(before != after)
    cells: dict[tuple[int, int, bool], list[int]] = {}
    for row in changed.tolist():
        cells.setdefault((int(y[row]), int(pseudo[row]), bool(after[row] == y[row])), []).append(
            row
        )
    turns = [
        (turn, cell, row) for cell, rows in cells.items() for turn, row in enumerate(rows[:limit])
    ]
    return np.array([row for _, _, row in sorted(turns)[:limit]], dtype=np.int64)


def write_gradcam(
    folder: Path,
    backbone: Backbone,
    before: Classifier,
    after: Classifier,
    images: Tensor,
    pixels: NDArray[np.uint8],
    records: Sequence[Mapping[str, Any]],
) -> None:
    """Picture pairs and gradcam.json in `folder`.

    `images` are [B, 3, H, W] in [0, 1], `pixels` the same as bytes [B, H, W, 3]; a record
    holds row, id, y, pseudo, and the answers erm and d2cp, whose maps are drawn.
    """
    maps = {}
    for name, model in (("erm", before), ("d2cp", after)):
        answers = torch.tensor([int(record[name]) for record in records], device=images.device)
        maps[name] = class_maps(backbone, model, images, answers).cpu().numpy()
    listed = []
    for index, record in enumerate(records):
        names = {"before": f"{index:02d}-before.png", "after": f"{index:02d}-after.png"}
        for key, model_name in (("before", "erm"), ("after", "d2cp")):
            save_png(overlay(pixels[index], maps[model_name][index]), folder / names[key])
        kept = {k: record[k] for k in ("row", "id", "y", "pseudo", "erm", "d2cp")}
        listed.append({**kept, **names})
    write_json(folder / "gradcam.json", listed)
