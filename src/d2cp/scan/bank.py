"""The bank of lenses: what each image looks like to each restricted view."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from d2cp.data.store import ImageStore
from d2cp.scan.batched import Arrays, Ints
from d2cp.scan.lenses import simple
from d2cp.scan.lenses.coloured import coloured
from d2cp.scan.lenses.patches import Dictionary, learn_dictionary
from d2cp.scan.lenses.saturation import saturation
from d2cp.scan.lenses.templates import Templates, learn_templates, to_fine
from d2cp.scan.lenses.tint import tint
from d2cp.scan.workers import each

TOGETHER = 16 * 144 * 144
"""Pixels looked at together: what is computed of them stays in a core's own cache."""
COARSE = 72
"""Side at which patterns are looked for; finer detail is the sharpness lens's."""
PATCHES = ("local pattern", "texture")
REPEATED = "repeated detail"
COLOURED = "coloured detail"
TEMPLATE_IMAGES = 250
PLAIN: dict[str, Callable[[Tensor], Tensor]] = {
    "colour": simple.colour,
    "tint": tint,
    "layout": simple.layout,
    "saturation": saturation,
    "sharpness": simple.sharpness,
    "border": simple.border,
    COLOURED: coloured,
}
IMAGE_LENSES = (REPEATED, *PATCHES, *PLAIN)


@dataclass(frozen=True)
class Bank:
    """The lenses that look at pixels. Nothing in it depends on a label."""

    dictionaries: tuple[Dictionary, ...]
    templates: Templates

    def features(self, images: Tensor, lenses: Collection[str] = IMAGE_LENSES) -> dict[str, Tensor]:
        """Features [B, D] of images [B, 3, S, S] in [0, 1], for each of `lenses` that looks at
        pixels."""
        found = self._patches(images) if any(name in lenses for name in PATCHES) else {}
        if REPEATED in lenses:
            found[REPEATED] = self.templates.largest(to_fine(images))
        return found | {name: look(images) for name, look in PLAIN.items() if name in lenses}

    def _patches(self, images: Tensor) -> dict[str, Tensor]:
        coarse = simple.shrink(images, COARSE)
        largest, mean = [], []
        for dictionary in self.dictionaries:
            answer = dictionary.responses(coarse).flatten(2)
            largest.append(answer.amax(2))
            mean.append(answer.clamp(min=0).square().mean(2))
        return {"local pattern": torch.cat(largest, dim=1), "texture": torch.cat(mean, dim=1)}

    def arrays(self) -> Arrays:
        parts = {f"dictionary{i}": part.arrays() for i, part in enumerate(self.dictionaries)}
        parts["templates"] = self.templates.arrays()
        return {
            f"{part}.{name}": array for part, own in parts.items() for name, array in own.items()
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Bank:
        def part(name: str) -> Arrays:
            return {k.split(".")[1]: v for k, v in arrays.items() if k.startswith(f"{name}.")}

        count = sum(name.endswith(".basis") for name in arrays)
        return cls(
            tuple(Dictionary.from_arrays(part(f"dictionary{i}")) for i in range(count)),
            Templates.from_arrays(part("templates")),
        )


def batches(rows: Ints, size: int) -> list[Ints]:
    """`rows` in parts that are looked at together, of images of `size`."""
    count = max(1, TOGETHER // (size * size))
    return [rows[start : start + count] for start in range(0, len(rows), count)]


def learn_bank(store: ImageStore, rows: Ints, centres: int, seed: int) -> Bank:
    """Patch dictionaries and templates from the images of `rows`; no label is needed."""
    coarse, fine = [], []
    for part in batches(rows, store.size):
        images = read(store, part)
        coarse.append(simple.shrink(images, COARSE))
        fine.append(to_fine(images))
    return bank_of(torch.cat(coarse), torch.cat(fine)[:TEMPLATE_IMAGES], centres, seed)


def bank_of(coarse: Tensor, fine: Tensor, centres: int, seed: int) -> Bank:
    """From pictures [N, 3, S, S] of about COARSE pixels a side, and grey ones [N, S, S]."""
    side = coarse.shape[-1]
    sides = (round(side / 7.2), round(side / 5))
    dictionaries = each(lambda side: learn_dictionary(coarse, side, centres, seed), sides)
    return Bank(tuple(dictionaries), learn_templates(fine, centres, seed))


def read(store: ImageStore, rows: Ints) -> Tensor:
    """Images [B, 3, S, S] in [0, 1]."""
    pixels: NDArray[np.uint8] = store[rows]
    return torch.from_numpy(pixels).permute(0, 3, 1, 2).float().div_(255).contiguous()
