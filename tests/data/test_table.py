from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from d2cp.data.source import ColouredSource
from d2cp.data.table import Table
from d2cp.errors import DataError


def table_of(cells: list[tuple[int, int, int]], classes: int = 3, values: int = 2) -> Table:
    """One row for each (split, y, a)."""
    n = len(cells)
    split, y, a = (np.array(column) for column in zip(*cells, strict=True))
    return Table(
        name="made",
        ids=np.array([f"row{i}" for i in range(n)]),
        y=y.astype(np.int64),
        split=split.astype(np.int8),
        a=a.astype(np.int64),
        class_names=tuple("xyz"[:classes]),
        attribute_names=tuple("pqr"[:values]),
        source=ColouredSource(
            np.zeros((1, 2, 2), np.uint8),
            np.zeros(n, np.int64),
            np.zeros(n, np.int64),
            np.array([[255, 0, 0]], np.uint8),
        ),
    )


rows = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 1)), min_size=1, max_size=80
)


@given(cells=rows)
@settings(max_examples=40, deadline=None)
def test_counts_and_groups_equal_a_literal_count(cells: list[tuple[int, int, int]]) -> None:
    table = table_of(cells)
    literal = Counter(cells)
    for code, name in enumerate(("train", "val", "test", "test_balanced")):
        if name in table.split_names:
            for y in range(3):
                for a in range(2):
                    assert table.counts()[name][f"{y},{a}"] == literal[(code, y, a)]
        assert [cells[row][0] for row in table.rows(name)] == [code] * len(table.rows(name))
    assert table.groups().tolist() == [2 * y + a for _, y, a in cells]


@given(cells=rows, n=st.integers(1, 40), seed=st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_subsample_keeps_proportions_and_order(
    cells: list[tuple[int, int, int]], n: int, seed: int
) -> None:
    table = table_of(cells)
    small = table.subsample(n, seed)
    assert small.ids.tolist() == table.subsample(n, seed).ids.tolist()
    position = {row: i for i, row in enumerate(table.ids.tolist())}
    kept = [position[row] for row in small.ids.tolist()]
    assert kept == sorted(set(kept))
    for split in table.split_names:
        before, after = table.counts()[split], small.counts()[split]
        total = sum(before.values())
        assert sum(after.values()) == min(n, total)
        occupied = sum(count > 0 for count in before.values())
        for cell, count in before.items():
            assert after[cell] <= count
            if n >= occupied and count:
                assert after[cell] >= 1
            # Each cell has its share to less than one row, plus what the floor of one costs.
            assert abs(after[cell] - count * min(n, total) / total) < 1 + occupied


def test_without_attribute_hides_it() -> None:
    bare = table_of([(0, 0, 1), (0, 1, 0)]).without_attribute()
    assert bare.a is None and bare.attribute_names is None and bare.n_values == 0
    assert bare.counts() == {"train": {"0": 1, "1": 1, "2": 0}}
    with pytest.raises(DataError, match="no attribute column"):
        bare.groups()


def test_fingerprint_changes_with_each_column() -> None:
    cells = [(0, 0, 1), (0, 1, 0), (1, 0, 0)]
    variants = [cells, [(1, 0, 1), *cells[1:]], [(0, 1, 1), *cells[1:]], [(0, 0, 0), *cells[1:]]]
    prints = {table_of(variant).fingerprint() for variant in variants}
    assert len(prints) == 4
    assert table_of(cells).fingerprint() in prints
    assert table_of(cells).without_attribute().fingerprint() not in prints


def test_columns_of_unequal_length_are_refused() -> None:
    table = table_of([(0, 0, 1), (0, 1, 0)])
    with pytest.raises(ValueError, match="length"):
        Table(
            name="made",
            ids=table.ids,
            y=table.y[:1],
            split=table.split,
            class_names=table.class_names,
            source=table.source,
        )


def test_unknown_split_is_an_error() -> None:
    with pytest.raises(DataError, match="tset"):
        table_of([(0, 0, 0)]).rows("tset")
