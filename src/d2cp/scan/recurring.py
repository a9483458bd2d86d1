"""What recurs, seen by itself: the windows in which a template matches best, and their mean.

In the mean over many pictures the scenes blur into grey and what they share stays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from d2cp.scan.bank import REPEATED, Bank
from d2cp.scan.batched import Ints
from d2cp.scan.finding import Reader
from d2cp.scan.lenses.templates import STRIDE, to_fine

ROOM = 1.7
"""Side of a window, in pieces: what the piece was cut from shows around it."""
LEAST = 4
"""Windows below which a mean shows nothing."""


@dataclass(frozen=True)
class Recurring:
    """Windows [n, s, s, 3] around a template's best matches, the best first, and their mean."""

    windows: NDArray[np.uint8]
    mean: NDArray[np.uint8]


@torch.no_grad()
def recurring(
    bank: Bank, reader: Reader, images: Tensor, side: int, most: int = 3
) -> list[Recurring]:
    """Of the templates that push images [B, 3, S, S] furthest towards value `side`, each with the
    half of the images that match it best; those whose window lies in the picture."""
    templates = bank.templates
    fine = to_fine(images)
    answer = templates.responses(fine)
    wide = answer.shape[3]
    largest, where = answer.flatten(2).max(2)
    chosen = _telling(reader, largest, side)[:most]
    scale = images.shape[-1] / fine.shape[-1]
    half = round(templates.side * scale * ROOM / 2)
    found = []
    for number in chosen.tolist():
        best = largest[:, number].argsort(descending=True)[: max(LEAST, len(images) // 2)]
        places = torch.stack([where[best, number] // wide, where[best, number] % wide])
        rows, columns = ((places * STRIDE + templates.side / 2) * scale).round().long()
        inside = [
            images[i, :, y - half : y + half, x - half : x + half]
            for i, y, x in zip(best.tolist(), rows.tolist(), columns.tolist(), strict=True)
            if half <= min(y, x) and max(y, x) + half <= images.shape[-1]
        ]
        if len(inside) >= LEAST:
            windows = torch.stack(inside)
            found.append(Recurring(_bytes(windows), _bytes(stretched(windows.mean(0))[None])[0]))
    return found


def _telling(reader: Reader, largest: Tensor, side: int) -> Ints:
    """Templates by how far they push these images towards the value, the furthest first; those that
    push away are left out."""
    weight = reader.weight[REPEATED]
    towards = weight[:, 0] * (2 * side - 1) if weight.shape[1] == 1 else weight[:, side]
    standard = (largest.numpy() - reader.centre[REPEATED]) / reader.scale[REPEATED]
    push = (standard * towards).mean(0)
    order: Ints = np.argsort(-push, kind="stable")[: int((push > 0).sum())]
    return order


def stretched(picture: Tensor) -> Tensor:
    """The whole range of brightness for a picture [3, s, s] that has little of it."""
    low, high = torch.quantile(picture.flatten(), picture.new_tensor([0.01, 0.99]))
    made: Tensor = ((picture - low) / (high - low + 1e-3)).clamp(0, 1)
    return made


def _bytes(images: Tensor) -> NDArray[np.uint8]:
    made: NDArray[np.uint8] = images.mul(255).round().byte().permute(0, 2, 3, 1).numpy()
    return made
