from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

from d2cp.data import load_table, open_images
from d2cp.data.loader import batches, epoch_order, image_batches, prefetch

ROWS = np.arange(100, 160)


def test_order_depends_on_seed_stage_and_epoch_alone() -> None:
    first = epoch_order(ROWS, seed=1, stage="s", epoch=2)
    assert sorted(first.tolist()) == ROWS.tolist()
    assert np.array_equal(first, epoch_order(ROWS, seed=1, stage="s", epoch=2))
    for other in ({"seed": 2}, {"stage": "t"}, {"epoch": 3}):
        assert not np.array_equal(
            first, epoch_order(ROWS, **{"seed": 1, "stage": "s", "epoch": 2, **other})
        )


@pytest.mark.parametrize(
    ("size", "drop", "lengths"), [(25, False, [25, 25, 10]), (25, True, [25, 25])]
)
def test_batches_cut_the_order(size: int, drop: bool, lengths: list[int]) -> None:
    pieces = list(batches(ROWS, size, drop_last=drop))
    assert [len(piece) for piece in pieces] == lengths
    assert np.array_equal(np.concatenate(pieces), ROWS[: sum(lengths)])


@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_reading_ahead_changes_nothing(ahead: int) -> None:
    store = open_images(load_table("cmnist", limit=30), 28)
    order = np.arange(len(store))[::-1]
    seen = list(image_batches(store, order, 16, ahead=ahead))
    assert np.array_equal(np.concatenate([rows for rows, _ in seen]), order)
    assert np.array_equal(np.concatenate([images for _, images in seen]), store[order])


def test_an_exception_in_the_thread_is_raised_in_the_loop() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise KeyError("lost")

    iterator = prefetch(items(), 2)
    assert next(iterator) == 1
    with pytest.raises(KeyError, match="lost"):
        next(iterator)


def test_an_abandoned_loop_ends_its_thread() -> None:
    def endless() -> Iterator[int]:
        while True:
            yield 0

    iterator = prefetch(endless(), 2)
    next(iterator)
    iterator.close()  # type: ignore[attr-defined]
    assert not [t for t in threading.enumerate() if t.name == "d2cp-prefetch"]
