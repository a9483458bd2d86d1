"""A batch computed in two parts, each on a core of its own where there are two.

Two threads that each take half of the images meet twice a step, forwards and backwards; two threads
inside an operation meet after every operation, and a neighbour that takes one core stops both. How
many parts there are follows from the work's size alone and each part is computed by itself, so the
bits are the same whether two cores share them or one takes them in turn.

The choice belongs to the thread that trains: trainings in several threads of one process do not
meet in it. The second thread is the process's, so that they take turns there; a fork has its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from d2cp.core.device import process_state
from d2cp.core.processes import process_count
from d2cp.core.threads import allowed, chosen_by_user, threads_for, using

PART = 100_000  # numbers in a step's inputs that are worth a part: below, calls cost more than sums
MOST = 2  # more were not tried

T = TypeVar("T")
Compute = Callable[..., Tensor]


@dataclass(frozen=True)
class Crew:
    """Parts of a batch, how many of them are computed at the same time, and on how many cores."""

    parts: int = 1
    workers: int = 1
    cores: int | None = None  # none: nobody has asked yet


_WHOLE = Crew()
_crew: ContextVar[Crew] = ContextVar("crew", default=_WHOLE)
_second: ThreadPoolExecutor  # the first part is the caller's


def _new_second() -> None:
    global _second
    _second = ThreadPoolExecutor(1, thread_name_prefix="d2cp-part")


_new_second()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_second)  # a thread does not survive a fork


@contextmanager
def working(values: int, before: int | None = None) -> Iterator[int]:
    """Within the block, steps that take in so many numbers: their batches are computed in parts.
    Yields the number of threads of an operation; a resumed loop had that many `before`."""
    outer = _crew.get()
    parts, cores = parts_for(values), outer.cores or allowed()
    workers = min(parts, cores)
    with using(cores):  # whatever a loop around this one is using
        threads = threads_for(values, before)
    if before is None or chosen_by_user():
        threads = max(1, threads // workers)
    token = _crew.set(Crew(parts, workers, cores))
    try:
        with using(threads):
            yield threads
    finally:
        _crew.reset(token)


def parts_for(values: int) -> int:
    """Where processes share a batch, or a device other than the CPU has it, it stays whole."""
    if process_count() > 1 or process_state().device.type != "cpu":
        return 1
    return max(1, min(MOST, values // PART))


def in_parts(compute: Compute, inputs: Sequence[Tensor], weights: Sequence[Tensor] = ()) -> Tensor:
    """compute(*inputs) [B, …], whose row i depends on row i of each input [B, …] and on `weights`:
    all that it reads and a gradient is wanted of. It must draw nothing at random."""
    if torch.compiler.is_compiling():  # an export knows nothing of threads
        return compute(*inputs)
    crew = _crew.get()
    if crew.parts < 2 or torch.is_autocast_enabled("cpu"):  # which another thread does not know
        return compute(*inputs)
    parts = min(crew.parts, len(inputs[0]))
    if not torch.is_grad_enabled():
        pieces = list(zip(*(x.chunk(parts) for x in inputs), strict=True))
        return torch.cat(_each(lambda piece: _without_graph(compute, piece), pieces))
    found: Tensor = _Parts.apply(compute, parts, len(inputs), *inputs, *weights)  # type: ignore[no-untyped-call]
    return found


def _without_graph(compute: Compute, piece: Sequence[Tensor]) -> Tensor:
    with torch.no_grad():
        return compute(*piece)


class _Parts(torch.autograd.Function):
    """Each part has a graph of its own, from its inputs and the weights to its output."""

    @staticmethod
    def forward(ctx: Any, compute: Compute, parts: int, count: int, *tensors: Tensor) -> Tensor:
        inputs, ctx.weights = tensors[:count], tensors[count:]

        def draw(piece: Sequence[Tensor]) -> tuple[list[Tensor], Tensor]:
            leaves = [
                x.detach().requires_grad_(whole.requires_grad)
                for x, whole in zip(piece, inputs, strict=True)
            ]
            with torch.enable_grad():
                return leaves, compute(*leaves)

        ctx.graphs = _each(draw, list(zip(*(x.chunk(parts) for x in inputs), strict=True)))
        return torch.cat([out.detach() for _, out in ctx.graphs])

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        sizes = [len(out) for _, out in ctx.graphs]
        weights = [w for w in ctx.weights if w.requires_grad]

        def go_back(job: tuple[tuple[list[Tensor], Tensor], Tensor]) -> tuple[Tensor | None, ...]:
            (leaves, out), slope = job
            wanted = [x for x in leaves if x.requires_grad]
            return torch.autograd.grad(out, [*wanted, *weights], slope, allow_unused=True)

        found = _each(go_back, list(zip(ctx.graphs, torch.split(slopes[0], sizes), strict=True)))
        leaves = ctx.graphs[0][0]
        ctx.graphs = None
        by_tensor = iter(list(zip(*found, strict=True)))
        of_inputs = [_joined(next(by_tensor)) if x.requires_grad else None for x in leaves]
        of_weights = [_added(next(by_tensor)) if w.requires_grad else None for w in ctx.weights]
        return None, None, None, *of_inputs, *of_weights


def _joined(slopes: Sequence[Tensor | None]) -> Tensor | None:
    known = [s for s in slopes if s is not None]
    return torch.cat(known) if known else None


def _added(slopes: Sequence[Tensor | None]) -> Tensor | None:
    known = [s for s in slopes if s is not None]
    return sum(known[1:], start=known[0]) if known else None


def _each(do: Callable[[Any], T], jobs: Sequence[Any]) -> list[T]:
    """do(job) of each, in order; all but the first in the second thread where there is one. A part
    is not divided again: there is no third thread, and the second must not wait for itself."""
    crew, threads = _crew.get(), torch.get_num_threads()

    def others() -> list[T]:
        torch.set_num_threads(threads)  # a thread has a number of its own
        return [do(job) for job in jobs[1:]]

    token = _crew.set(Crew(cores=crew.cores))
    try:
        if crew.workers < 2:
            return [do(job) for job in jobs]
        later = _second.submit(others)
        try:
            first = do(jobs[0])
        finally:
            later.exception()  # the other part has ended, too
        return [first, *later.result()]
    finally:
        _crew.reset(token)
