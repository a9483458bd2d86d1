from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

from d2cp.data import load_table, open_images
from d2cp.data.loader import prefetch


@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_reading_ahead_changes_nothing(ahead: int) -> None:
    store = open_images(load_table("cmnist", limit=30), 28)
    parts = np.array_split(np.arange(len(store))[::-1], 6)
    seen = list(prefetch((store[rows] for rows in parts), ahead))
    assert np.array_equal(np.concatenate(seen), store[np.concatenate(parts)])


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
