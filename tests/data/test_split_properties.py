"""Splits and subsamples of a table, for any labels."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from d2cp.data import load_table
from d2cp.data.splits import stratified_split

LABELS = st.lists(st.integers(0, 4), min_size=3, max_size=120).map(np.array)
TABLE = load_table("cmnist", limit=60)


@given(LABELS, st.integers(0, 10**6))
def test_a_drawn_split_covers_every_row_once_and_is_repeatable(y, seed):
    split = stratified_split(y, seed)
    assert split.shape == y.shape and set(np.unique(split)) <= {0, 1, 2}
    assert np.array_equal(split, stratified_split(y, seed))
    for label in np.unique(y):  # every class can be trained on
        assert (split[y == label] == 0).any()


@given(st.integers(1, 80), st.integers(0, 10**6))
def test_a_subsample_keeps_order_bounds_and_every_cell_it_can(n, seed):
    part = TABLE.subsample(n, seed)
    assert part.ids.tolist() == [i for i in TABLE.ids.tolist() if i in set(part.ids.tolist())]
    for name in TABLE.split_names:
        rows, kept = TABLE.rows(name), part.rows(name)
        assert len(kept) == min(n, len(rows))
        cells = np.unique(TABLE.groups()[rows])
        if n >= len(cells):
            assert set(np.unique(part.groups()[kept])) == set(cells)


@given(st.lists(st.integers(0, len(TABLE) - 1), min_size=1, max_size=40))
def test_a_subset_is_its_rows(rows):
    index = np.array(rows, dtype=np.int64)
    part = TABLE.subset(index)
    assert np.array_equal(part.y, TABLE.y[index]) and np.array_equal(part.ids, TABLE.ids[index])
    assert part.without_attribute().a is None
    assert (part.fingerprint() == TABLE.fingerprint()) == (rows == list(range(len(TABLE))))
