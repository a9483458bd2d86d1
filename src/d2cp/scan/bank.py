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
from d2cp.scan.lenses.patches import Dictionary, learn_dictionary
from d2cp.scan.lenses.saturation import saturation
from d2cp.scan.lenses.tint import tint
from d2cp.scan.workers import each

TOGETHER = 16 * 144 * 144
"""Pixels looked at together: what is computed of them stays in a core's own cache."""
COARSE = 72
"""Side at which patterns are looked for; finer detail is the sharpness lens's."""
PATCHES = ("local pattern", "texture")
PLAIN: dict[str, Callable[[Tensor], Tensor]] = {
    "colour": simple.colour,
    "tint": tint,
    "layout": simple.layout,
    "saturation": saturation,
    "sharpness": simple.sharpness,
    "border": simple.border,
}
IMAGE_LENSES = (*PATCHES, *PLAIN)


@dataclass(frozen=True)
class Bank:
    """The lenses that look at pixels. Nothing in it depends on a label."""

    dictionaries: tuple[Dictionary, ...]

    def features(self, images: Tensor, lenses: Collection[str] = IMAGE_LENSES) -> dict[str, Tensor]:
        """Features [B, D] of images [B, 3, S, S] in [0, 1], for each of `lenses` that looks at
        pixels."""
        found = self._patches(images) if any(name in lenses for name in PATCHES) else {}
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
        return {
            f"dictionary{i}.{name}": array
            for i, dictionary in enumerate(self.dictionaries)
            for name, array in dictionary.arrays().items()
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Bank:
        count = sum(name.endswith(".basis") for name in arrays)
        parts = (
            {k.split(".")[1]: v for k, v in arrays.items() if k.startswith(f"dictionary{i}.")}
            for i in range(count)
        )
        return cls(tuple(Dictionary.from_arrays(part) for part in parts))


def batches(rows: Ints, size: int) -> list[Ints]:
    """`rows` in parts that are looked at together, of images of `size`."""
    count = max(1, TOGETHER // (size * size))
    return [rows[start : start + count] for start in range(0, len(rows), count)]


def learn_bank(store: ImageStore, rows: Ints, centres: int, seed: int) -> Bank:
    """Patch dictionaries from the images of `rows`; no label is needed."""
    images = torch.cat([simple.shrink(read(store, r), COARSE) for r in batches(rows, store.size)])
    side = images.shape[-1]
    sides = (round(side / 7.2), round(side / 5))
    return Bank(tuple(each(lambda side: learn_dictionary(images, side, centres, seed), sides)))


def read(store: ImageStore, rows: Ints) -> Tensor:
    """Images [B, 3, S, S] in [0, 1]."""
    pixels: NDArray[np.uint8] = store[rows]
    return torch.from_numpy(pixels).permute(0, 3, 1, 2).float().div_(255).contiguous()
