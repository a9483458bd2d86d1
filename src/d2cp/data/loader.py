"""Batches read ahead by one background thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


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
