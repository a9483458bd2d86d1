"""How a scan sees images: features, plain properties and pixels of any rows, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from d2cp.data.store import ImageStore
from d2cp.scan.bank import IMAGE_LENSES, Bank, batches, learn_bank, read
from d2cp.scan.batched import Floats, Ints
from d2cp.scan.properties import properties
from d2cp.scan.workers import each

Features = dict[str, Floats]
DICTIONARY_IMAGES = 800


class Eyes(Protocol):
    """What a scan needs of a data set's pixels. A benchmark that knows its images beforehand can
    bring features along. Several threads look at the same time."""

    @property
    def bank(self) -> Bank: ...

    @property
    def size(self) -> int: ...

    def look(self, rows: Ints, lenses: Collection[str]) -> Features:
        """Features of a batch of rows through those of `lenses` that look at pixels."""

    def describe(self, rows: Ints) -> Features:
        """Plain properties of a batch of rows."""

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
    def look(self, rows: Ints, lenses: Collection[str]) -> Features:
        found = self.bank.features(self.images(rows), lenses)
        return {name: values.numpy() for name, values in found.items()}

    @torch.no_grad()
    def describe(self, rows: Ints) -> Features:
        return {name: values.numpy() for name, values in properties(self.images(rows)).items()}


def look_at_all(eyes: Eyes, rows: Ints) -> Features:
    """Through every lens."""
    return _gathered(lambda part: eyes.look(part, IMAGE_LENSES), batches(rows, eyes.size))


def describe_all(eyes: Eyes, rows: Ints) -> Features:
    return _gathered(eyes.describe, batches(rows, eyes.size))


def _gathered(look: Callable[[Ints], Features], parts: list[Ints]) -> Features:
    """The batches' features put together where they belong: nothing is held twice."""
    first = look(parts[0])
    n, count = sum(len(part) for part in parts), len(parts[0])
    whole = {name: np.empty((n, *values.shape[1:]), np.float32) for name, values in first.items()}

    def put(number: int) -> None:
        start = number * count
        for name, values in (look(parts[number]) if number else first).items():
            whole[name][start : start + len(values)] = values

    each(put, range(len(parts)))
    return whole
