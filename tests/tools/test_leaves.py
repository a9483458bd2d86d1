"""The rendered leaves: repeatable, and with the planted shortcut where it is said to be."""

from __future__ import annotations

import numpy as np

from d2cp.data import load_table
from tools.leaves.__main__ import render, write


def test_a_photograph_depends_on_its_number_alone():
    first, again, other = (np.asarray(render(0, n, "magnolia", True, 48)) for n in (3, 3, 4))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_the_tag_is_the_only_difference_between_tagged_and_untagged():
    plain, tagged = (
        np.asarray(render(0, 5, "lilac", with_tag, 112)).astype(int) for with_tag in (False, True)
    )
    changed = (np.abs(plain - tagged).max(-1) > 12).mean()
    assert 0.02 < changed < 0.06


def test_the_written_folder_is_a_data_set_whose_tag_follows_the_kind_in_training_only(tmp_path):
    write(tmp_path, images=400, agreement=0.9, side=16, seed=0)
    table = load_table(tmp_path)
    assert list(table.class_names) == ["lilac", "magnolia"]
    assert table.attribute_names is not None and table.a is not None
    tagged = table.a == list(table.attribute_names).index("tag")
    follows = tagged == (table.y == 1)
    assert 0.84 < follows[table.rows("train")].mean() < 0.95
    assert 0.38 < follows[table.rows("test")].mean() < 0.62
