"""How a scan sees images: features, plain properties and pixels of any rows, batch by batch."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from d2cp.data.store import ImageStore
from d2cp.scan.bank import BATCH, Bank, learn_bank, read
from d2cp.scan.batched import Floats, Ints
from d2cp.scan.properties import properties

Features = dict[str, Floats]
DICTIONARY_IMAGES = 800


class Eyes(Protocol):
    """What a scan needs of a data set's pixels. A benchmark that knows its images beforehand can
    bring features along."""

    @property
    def bank(self) -> Bank: ...

    @property
    def size(self) -> int: ...

    def look(self, rows: Ints) -> tuple[Features, Features]:
        """Features, and plain properties, of a batch of rows."""

    def images(self, rows: Ints) -> Tensor:
        """[B, 3, S, S] in [0, 1]."""


class StoreEyes:
    """Eyes on an image store; the dictionaries are learnt from `rows`, without labels."""

    def __init__(self, store: ImageStore, rows: Ints, centres: int, seed: int) -> None:
        self.store, self.size = store, store.size
        self.bank = learn_bank(store, rows[:DICTIONARY_IMAGES], centres, seed)

    def images(self, rows: Ints) -> Tensor:
        return read(self.store, rows)

    @torch.no_grad()
    def look(self, rows: Ints) -> tuple[Features, Features]:
        images = self.images(rows)
        seen = {name: values.numpy() for name, values in self.bank.features(images).items()}
        return seen, {name: values.numpy() for name, values in properties(images).items()}


def look_at_all(eyes: Eyes, rows: Ints) -> tuple[Features, Features]:
    """The same for many rows."""
    parts = [eyes.look(rows[start : start + BATCH]) for start in range(0, len(rows), BATCH)]
    return _joined([seen for seen, _ in parts]), _joined([words for _, words in parts])


def _joined(parts: list[Features]) -> Features:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
