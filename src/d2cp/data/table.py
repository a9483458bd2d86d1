"""One table behind every data set: a row is an image with its label, split and id."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from d2cp.core.rng import numpy_generator
from d2cp.data.source import FileSource, ImageSource
from d2cp.errors import DataError

SPLITS = ("train", "val", "test")
# The embedded sets carry one more: the test digits with colour balanced within each class.
SPLIT_NAMES = (*SPLITS, "test_balanced")
BLOCK = 4096  # ids that are put into one text to be digested

Counts = dict[str, dict[str, int]]


def split_code(name: str) -> int:
    if name not in SPLIT_NAMES:
        raise DataError(f"no split is called {name!r}", expected=", ".join(SPLIT_NAMES))
    return SPLIT_NAMES.index(name)


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of images; `a`, the true attribute, is for scoring and group-supervised methods only."""

    name: str
    ids: NDArray[np.str_]
    y: NDArray[np.int64]
    split: NDArray[np.int8]
    class_names: tuple[str, ...]
    source: ImageSource
    a: NDArray[np.int64] | None = None
    attribute_names: tuple[str, ...] | None = None
    format: str = ""
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    expected_counts: Counts | None = None

    def __post_init__(self) -> None:
        n = len(self.ids)
        lengths = {n, len(self.y), len(self.split), len(self.source)}
        if lengths != {n} or (self.a is not None and len(self.a) != n):
            raise ValueError("columns of a table differ in length")
        if (self.a is None) != (self.attribute_names is None):
            raise ValueError("attribute values and attribute names come together")

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def n_classes(self) -> int:
        return len(self.class_names)

    @property
    def n_values(self) -> int:
        return 0 if self.attribute_names is None else len(self.attribute_names)

    @property
    def split_names(self) -> tuple[str, ...]:
        """The splits that have rows, in their usual order."""
        present = np.unique(self.split)
        return tuple(name for code, name in enumerate(SPLIT_NAMES) if code in present)

    def rows(self, split: str) -> NDArray[np.int64]:
        """Indices of a split's rows, in table order."""
        return np.flatnonzero(self.split == split_code(split)).astype(np.int64)

    def groups(self) -> NDArray[np.int64]:
        """group = A·y + a"""
        if self.a is None:
            raise DataError(
                f"the data set {self.name!r} has no attribute column",
                expected="a table with true attributes",
                remedy="use a method that needs no group labels, or add an attribute column",
            )
        return self.n_values * self.y + self.a

    def without_attribute(self) -> Table:
        """What an unsupervised method is handed."""
        return replace(self, a=None, attribute_names=None, expected_counts=None)

    def subset(self, indices: NDArray[np.int64]) -> Table:
        index = np.asarray(indices, dtype=np.int64)
        source = self.source.subset(index)
        shared = isinstance(self.source, FileSource) and self.ids is self.source.names
        return replace(
            self,
            # File names that serve as ids are held once.
            ids=source.names if shared and isinstance(source, FileSource) else self.ids[index],
            y=self.y[index],
            split=self.split[index],
            a=None if self.a is None else self.a[index],
            source=source,
            expected_counts=None,
        )

    def subsample(self, n_per_split: int | Mapping[str, int], seed: int = 0) -> Table:
        """At most n rows of each split, in table order, with the proportions of the classes (and
        attributes) kept and no cell that had rows left empty as long as n allows it."""
        strata = self.y if self.a is None else self.groups()
        kept: list[NDArray[np.int64]] = []
        for name in self.split_names:
            rows = self.rows(name)
            n = n_per_split if isinstance(n_per_split, int) else n_per_split.get(name, len(rows))
            if n < len(rows):
                cells, sizes = np.unique(strata[rows], return_counts=True)
                generator = numpy_generator(seed, f"subsample/{name}")
                for cell, take in zip(cells, _shares(sizes, n), strict=True):
                    members = rows[strata[rows] == cell]
                    kept.append(generator.permutation(members)[:take])
            else:
                kept.append(rows)
        return self.subset(np.sort(np.concatenate(kept)))

    def counts(self) -> Counts:
        """{split: {"y,a": n}}, or {split: {"y": n}} without attributes; empty cells are listed."""
        found: Counts = {}
        for name in self.split_names:
            rows = self.rows(name)
            if self.a is None:
                per_class = np.bincount(self.y[rows], minlength=self.n_classes)
                found[name] = {str(y): int(n) for y, n in enumerate(per_class)}
                continue
            cells = np.bincount(
                self.groups()[rows], minlength=self.n_classes * self.n_values
            ).reshape(self.n_classes, self.n_values)
            found[name] = {f"{y},{a}": int(n) for (y, a), n in np.ndenumerate(cells)}
        return found

    def fingerprint(self) -> str:
        """Identity of the columns and of the images' names and sizes. (The exact content of the
        pixels is in `ImageStore.key`, which needs every file read once.)"""
        digest = hashlib.blake2b(digest_size=16)
        names = "\0".join([*self.class_names, "", *(self.attribute_names or ())])
        digest.update(_encoded(names) + b"\1")
        for start in range(0, len(self), BLOCK):
            block = "\0".join(self.ids[start : start + BLOCK].tolist())
            digest.update(_encoded("\0" + block if start else block))
        digest.update(b"\1" + _encoded(self.source.identity()) + b"\1")
        digest.update(self.y.astype("<i8").tobytes() + self.split.astype("<i1").tobytes())
        if self.a is not None:
            digest.update(self.a.astype("<i8").tobytes())
        return digest.hexdigest()


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _shares(sizes: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """n places in proportion to `sizes`, by largest remainder; one for each where possible."""
    floor = 1 if n >= len(sizes) else 0
    exact = sizes * (n / sizes.sum())
    shares: NDArray[np.int64] = np.clip(np.floor(exact).astype(np.int64), floor, sizes)
    while shares.sum() < n:
        shares[np.argmax(np.where(shares < sizes, exact - shares, -np.inf))] += 1
    while shares.sum() > n:
        shares[np.argmax(np.where(shares > floor, shares - exact, -np.inf))] -= 1
    return shares
