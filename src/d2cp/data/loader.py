"""Batches: order as a function of (seed, stage, epoch), read ahead by one background thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from d2cp.core.rng import permutation
from d2cp.data.store import ImageStore

T = TypeVar("T")
Index = NDArray[np.int64]


def epoch_order(rows: Index, *, seed: int, stage: str, epoch: int) -> Index:
    """`rows` in the order of one epoch."""
    order: Index = rows[permutation(seed, stage, epoch, len(rows))]
    return order


def batches(order: Index, batch_size: int, *, drop_last: bool = False) -> Iterator[Index]:
    """Consecutive pieces of `order`."""
    if batch_size < 1:
        raise ValueError("batch_size must be positive")
    stop = len(order) - len(order) % batch_size if drop_last else len(order)
    for start in range(0, stop, batch_size):
        yield order[start : min(start + batch_size, stop)]


def image_batches(
    store: ImageStore, order: Index, batch_size: int, *, ahead: int = 2, drop_last: bool = False
) -> Iterator[tuple[Index, NDArray[np.uint8]]]:
    """(rows, uint8 [B, size, size, 3]) batch by batch, `ahead` of them read in advance."""
    pairs = ((rows, store[rows]) for rows in batches(order, batch_size, drop_last=drop_last))
    return prefetch(pairs, ahead)


def prefetch(items: Iterable[T], ahead: int) -> Iterator[T]:
    """The same items in the same order, made in a thread; its exceptions are raised here. The
    thread ends with the iterator, also when that is abandoned half-way."""
    if ahead < 1:
        yield from items
        return
    waiting: queue.Queue[tuple[T | None, BaseException | None, bool]] = queue.Queue(ahead)
    stop = threading.Event()

    def put(entry: tuple[T | None, BaseException | None, bool]) -> bool:
        while not stop.is_set():
            try:
                waiting.put(entry, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def produce() -> None:
        try:
            for item in items:
                if not put((item, None, False)):
                    return
            put((None, None, True))
        except BaseException as error:
            put((None, error, True))

    thread = threading.Thread(target=produce, name="d2cp-prefetch", daemon=True)
    thread.start()
    try:
        while True:
            item, error, last = waiting.get()
            if error is not None:
                raise error
            if last:
                return
            yield item  # type: ignore[misc]  # not None: only the last entry has no item
    finally:
        stop.set()
        thread.join()
