"""Independent jobs on all cores, each computed by one thread.

What a job computes does not depend on how many run at the same time, so that the bits are the same
on one core and on many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch
from threadpoolctl import threadpool_limits

from d2cp.core.threads import allowed, using

In = TypeVar("In")
Out = TypeVar("Out")

_pool: ThreadPoolExecutor | None = None


@contextmanager
def sharing() -> Iterator[None]:
    """Within the block an operation is computed by one thread, and `each` uses every core."""
    global _pool
    if _pool is not None:
        yield
        return
    workers = allowed()
    with (
        using(1),
        threadpool_limits(limits=1, user_api="blas"),
        ThreadPoolExecutor(workers, "d2cp-scan", torch.set_num_threads, (1,)) as pool,
    ):
        _pool = pool
        try:
            yield
        finally:
            _pool = None


def each(do: Callable[[In], Out], jobs: Iterable[In]) -> list[Out]:
    """do(job) of each, in order. A job must not call this itself: it would wait for its own
    place."""
    if _pool is None:
        return [do(job) for job in jobs]
    return list(_pool.map(do, jobs))
