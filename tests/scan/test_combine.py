"""Several findings as one pseudo attribute: the product, and where rare cells go."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from d2cp.scan.combine import RARE, combine


def cells(*counts):
    """Rows of (class, value 1, value 2), so many each; all are for training."""
    made = [(y, a, b) for (y, a, b), n in counts for _ in range(n)]
    y, a, b = np.array(made, dtype=np.int64).T
    rows = np.arange(len(y))
    return y, [a, b], rows


def test_the_product_of_two_findings_keeps_cells_that_are_large_enough():
    y, values, rows = cells(
        *(((0, 0, 0), 90), ((0, 0, 1), 12), ((0, 1, 0), 12), ((0, 1, 1), 10)), ((1, 1, 1), 50)
    )
    made = combine(values, [2, 2], y, rows, rows)
    assert made.parts == ((0, 0), (0, 1), (1, 0), (1, 1)) and made.merged == ()
    assert np.array_equal(made.labels, 2 * values[0] + values[1])


def test_a_rare_cell_keeps_the_first_findings_value():
    y, values, rows = cells(
        ((0, 0, 0), 90), ((0, 0, 1), 12), ((0, 1, 0), 12), ((0, 1, 1), 2), ((1, 1, 1), 50)
    )
    made = combine(values, [2, 2], y, rows, rows)
    (merged,) = made.merged
    assert (merged.label, merged.images) == (0, 2)
    assert (merged.value, merged.into) == (3, 2)  # (1, 1) becomes (1, 0)
    rare = (y == 0) & (values[0] == 1) & (values[1] == 1)
    assert [made.parts[v] for v in set(made.labels[rare].tolist())] == [(1, 0)]


def test_where_all_that_goes_against_is_rare_it_becomes_one_cell():
    y, values, rows = cells(
        ((0, 0, 0), 90), ((0, 0, 1), 3), ((0, 1, 0), 4), ((1, 1, 1), 60), ((1, 0, 0), 12)
    )
    made = combine(values, [2, 2], y, rows, rows)
    against = (y == 0) & ((values[0] == 1) | (values[1] == 1))
    assert len(set(made.labels[against].tolist())) == 1
    assert set(made.labels[against]).isdisjoint(made.labels[(y == 0) & ~against])


def test_one_finding_is_taken_as_it_is():
    y, values, rows = cells(((0, 0, 0), 40), ((0, 1, 0), 1), ((1, 1, 0), 40))
    made = combine(values[:1], [2], y, rows, rows)
    assert np.array_equal(made.labels, values[0]) and not made.merged


def test_the_class_of_a_test_image_has_no_say():
    y, values, rows = cells(
        *(((0, 0, 0), 90), ((0, 0, 1), 12), ((0, 1, 0), 12), ((0, 1, 1), 2)),
        *(((1, 1, 1), 50), ((1, 0, 0), 20), ((1, 1, 0), 2)),
    )
    train = rows[::2]
    first = combine(values, [2, 2], y, train, train)
    dealt = y.copy()
    dealt[1::2] = 1 - dealt[1::2]
    again = combine(values, [2, 2], dealt, train, train)
    assert np.array_equal(first.labels, again.labels)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3))
def test_every_group_is_large_unless_its_class_has_no_other(seed, findings):
    draw = np.random.default_rng(seed)
    n = int(draw.integers(30, 150))
    y = draw.integers(2, size=n)
    y[:2] = 0, 1
    values = [np.where(draw.random(n) < 0.9, y, 1 - y) for _ in range(findings)]
    rows = np.arange(n)
    made = combine(values, [2] * findings, y, rows, rows)
    assert set(made.labels.tolist()) == set(range(len(made.parts)))
    assert sum(m.images for m in made.merged) <= n
    if findings > 1:
        for c in (0, 1):
            counts = np.bincount(made.labels[y == c], minlength=len(made.parts))
            small = [k for k in np.sort(counts[counts > 0])[:-1] if k < RARE]
            assert len(small) <= 1 and (not small or (counts > 0).sum() == 2)


def test_what_no_training_image_has_takes_the_nearest():
    y = np.array([0] * 20 + [1] * 20 + [0])
    a = np.array([0] * 20 + [1] * 20 + [0])
    b = np.array([0] * 20 + [1] * 20 + [1])
    made = combine([a, b], [2, 2], y, np.arange(40), np.arange(40))
    assert made.parts == ((0, 0), (1, 1))
    assert made.parts[made.labels[40]] == (0, 0)


def test_sizes_and_values_must_fit():
    with pytest.raises(ValueError):
        combine([np.array([2])], [2], np.array([0]), np.array([0]), np.array([0]))
