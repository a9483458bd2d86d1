"""Plain properties of an image that a person has a word for."""

from __future__ import annotations

import torch
from torch import Tensor

from d2cp.scan.lenses.coloured import hues
from d2cp.scan.lenses.simple import luma


def properties(images: Tensor) -> dict[str, Tensor]:
    """One number an image [B] for each word, of images [B, 3, S, S] in [0, 1]."""
    grey = luma(images)
    mean = images.mean((2, 3))
    side = grey.shape[-1]
    half, quarter, edge = side // 2, side // 4, max(1, round(side * 0.03))
    middle = grey[:, quarter : side - quarter, quarter : side - quarter].mean((1, 2))
    differences = (grey[:, 1:, 1:] - grey[:, :-1, :-1]).abs()
    inner = grey[:, edge : side - edge, edge : side - edge]
    area = side * side
    frame = (grey.sum((1, 2)) - inner.sum((1, 2))) / (area - inner[0].numel())
    next_in = grey[:, 2 * edge : side - 2 * edge, 2 * edge : side - 2 * edge]
    ring = (inner.sum((1, 2)) - next_in.sum((1, 2))) / max(1, inner[0].numel() - next_in[0].numel())
    rim = torch.cat([differences[:, :edge].flatten(1), differences[:, -edge:].flatten(1)], dim=1)
    fine = (grey[:, :, 2:] - 2 * grey[:, :, 1:-1] + grey[:, :, :-2]).abs().mean((1, 2))
    others = mean.sum(1)
    return {
        "red": mean[:, 0] - (others - mean[:, 0]) / 2,
        "green": mean[:, 1] - (others - mean[:, 1]) / 2,
        "blue": mean[:, 2] - (others - mean[:, 2]) / 2,
        "bright": grey.mean((1, 2)),
        "saturated": (images.amax(1) - images.amin(1)).mean((1, 2)),
        "contrasty": grey.std((1, 2)),
        "rough": torch.log(differences.mean((1, 2)) + 1e-3),
        "sharp": torch.log(fine + 1e-3) - torch.log(differences.mean((1, 2)) + 1e-3),
        "upper half bright": grey[:, :half].mean((1, 2)) - grey[:, half:].mean((1, 2)),
        "left half bright": grey[:, :, :half].mean((1, 2)) - grey[:, :, half:].mean((1, 2)),
        "centre bright": middle - grey.mean((1, 2)),
        "edge bright": frame - ring,
        "edge rough": torch.log(rim.mean(1) + 1e-3) - torch.log(differences.mean((1, 2)) + 1e-3),
        **{f"{hue} part": far for hue, far in hues(images).items()},
    }
