"""Coloured digits made from MNIST: label and colour agree, partly agree, or have no relation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from d2cp.core.arrays import Ints as Labels
from d2cp.core.rng import numpy_generator
from d2cp.data.mnist import Mnist, load_mnist
from d2cp.data.source import ColouredSource
from d2cp.data.table import SPLIT_NAMES, Table

CMNIST_COUNTS = {
    "train": {"0,0": 254, "0,1": 25284, "1,0": 24231, "1,1": 231},
    "val": {"0,0": 45, "0,1": 5013, "1,0": 4893, "1,1": 49},
    "test": {"0,0": 48, "0,1": 5091, "1,0": 4815, "1,1": 46},
}
CMNIST10_RHO = 0.95  # share of digits that carry their class's colour; the rest: the nine others

_RED_GREEN = {"red": (255, 0, 0), "green": (0, 255, 0)}
_TEN = {
    "red": (255, 0, 0),
    "green": (0, 255, 0),
    "blue": (40, 80, 255),
    "yellow": (255, 255, 0),
    "magenta": (255, 0, 255),
    "cyan": (0, 255, 255),
    "orange": (255, 128, 0),
    "purple": (136, 0, 204),
    "white": (255, 255, 255),
    "brown": (136, 68, 17),
}
_HALVES = ("0-4", "5-9")

Colouring = Callable[[Labels, str], Labels]


def load_embedded(name: str) -> Table:
    return EMBEDDED_SETS[name]()


def cmnist(folder: Path | None = None) -> Table:
    """The paper's set: y = digit > 4, 99% of each class in one colour; from `folder` if given."""
    table = _build(
        "cmnist", load_mnist(folder), _half, _paper_colours, _HALVES, _RED_GREEN, balanced=True
    )
    return replace(table, expected_counts=CMNIST_COUNTS)


def cmnist10() -> Table:
    """Ten digits × ten colours, colour = class with probability CMNIST10_RHO."""
    digits = tuple(str(digit) for digit in range(10))
    return _build("cmnist10", load_mnist(), _same, _ten_colours, digits, _TEN, balanced=True)


def digits_unbiased() -> Table:
    """y = digit > 4, colour by a fair coin: there is no shortcut to find."""
    return _build(
        "digits-unbiased", load_mnist(), _half, _fair_coin, _HALVES, _RED_GREEN, balanced=False
    )


EMBEDDED_SETS: dict[str, Callable[[], Table]] = {
    "cmnist": cmnist,
    "cmnist10": cmnist10,
    "digits-unbiased": digits_unbiased,
}


def _build(
    name: str,
    mnist: Mnist,
    label: Callable[[Labels], Labels],
    colouring: Colouring,
    class_names: tuple[str, ...],
    palette: dict[str, tuple[int, int, int]],
    *,
    balanced: bool,
) -> Table:
    """train = the first 50,000 training digits, val = the last 10,000, test = the test digits."""
    digits = np.concatenate([mnist.train_labels, mnist.test_labels])
    parts = {"train": (0, 50_000), "val": (50_000, 60_000), "test": (60_000, 70_000)}
    if balanced:
        parts["test_balanced"] = parts["test"]
    index, y, a, split = [], [], [], []
    ids: list[str] = []
    for part, (start, stop) in parts.items():
        labels = label(digits[start:stop])
        if part == "test_balanced":
            colours = _balanced_colours(labels, digits[start:stop], len(palette))
        else:
            colours = colouring(labels, part)
        index.append(np.arange(start, stop, dtype=np.int64))
        y.append(labels)
        a.append(colours)
        split.append(np.full(stop - start, SPLIT_NAMES.index(part), dtype=np.int8))
        ids.extend(f"{part}/{number:05d}" for number in range(stop - start))
    colour = np.concatenate(a)
    return Table(
        name=name,
        format="embedded",
        ids=np.array(ids),
        y=np.concatenate(y),
        split=np.concatenate(split),
        a=colour,
        class_names=class_names,
        attribute_names=tuple(palette),
        source=ColouredSource(
            grey=np.concatenate([mnist.train_images, mnist.test_images]),
            index=np.concatenate(index),
            colour=colour,
            palette=np.array(list(palette.values()), dtype=np.uint8),
        ),
    )


def _half(digits: Labels) -> Labels:
    return (digits > 4).astype(np.int64)


def _same(digits: Labels) -> Labels:
    return digits


def _paper_colours(y: Labels, split: str) -> Labels:
    """Published draw: per split a fresh legacy generator of seed 0 (an instance, not NumPy's global
    one), first all y=0 samples, then all y=1."""
    legacy = np.random.RandomState(0)
    a = np.zeros_like(y)
    a[y == 0] = legacy.binomial(1, 0.99, size=int((y == 0).sum()))
    a[y == 1] = legacy.binomial(1, 0.01, size=int((y == 1).sum()))
    return a


def _ten_colours(y: Labels, split: str) -> Labels:
    generator = numpy_generator(0, f"cmnist10/{split}")
    agrees = generator.random(len(y)) < CMNIST10_RHO
    other = (y + generator.integers(1, 10, size=len(y))) % 10
    return np.where(agrees, y, other)


def _fair_coin(y: Labels, split: str) -> Labels:
    return numpy_generator(0, f"digits-unbiased/{split}").integers(0, 2, size=len(y))


def _balanced_colours(y: Labels, digits: Labels, n_colours: int) -> Labels:
    """Colours dealt in turn over the rows sorted by class and digit: equal, to one image, within
    each class and within each digit."""
    a = np.empty_like(y)
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        rows = rows[np.argsort(digits[rows], kind="stable")]
        a[rows] = np.arange(len(rows)) % n_colours
    return a
