"""One or many processes (`torchrun`, `accelerate launch`): the main one writes, all of them agree.

Each process holds a share of the batch and computes the loss of the WHOLE batch from sums over the
processes. Going backwards, such a sum adds up the gradients of all processes, so the MEAN over the
processes of a weight's gradient is what one process with the whole batch would have: that is what
DistributedDataParallel takes, and `mean_gradients` where it is not used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from accelerate.utils import broadcast_object_list
from torch import Tensor

from d2cp.core.device import process_state
from d2cp.errors import TrainingError

T = TypeVar("T")


def is_main() -> bool:
    return bool(process_state().is_main_process)


def wait_for_all() -> None:
    process_state().wait_for_everyone()


@contextmanager
def main_first() -> Iterator[None]:
    """On each machine one process does the block before the others, which find what it left."""
    with process_state().local_main_process_first():
        yield


def from_main(value: T) -> T:
    """The main process's value, in every process."""
    box = [value]
    if process_count() > 1:
        broadcast_object_list(box)
    return box[0]


def anyone(here: bool) -> bool:
    """Whether it is so in any of the processes: they must leave a loop at the same step."""
    if process_count() == 1:
        return here
    return bool(global_sum(torch.tensor(int(here), device=process_state().device)) > 0)


def process_count() -> int:
    return int(process_state().num_processes)


def process_rank() -> int:
    return int(process_state().process_index)


def share_of(batch: int) -> slice:
    """Which images of a batch are this process's."""
    if batch < process_count():
        raise TrainingError(
            f"a batch of {batch} images cannot be shared by {process_count()} processes",
            expected="at least one image for each of them",
            remedy="use fewer processes or a larger batch",
        )
    return slice(process_rank(), None, process_count())


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].clone()
        dist.all_reduce(total)
        return total


def global_sum(x: Tensor) -> Tensor:
    """Sum of `x` over the processes."""
    if process_count() == 1:
        return x
    total: Tensor = _Sum.apply(x)  # type: ignore[no-untyped-call]
    return total


def global_mean(mean: Tensor, count: int) -> Tensor:
    """The mean over the global batch, from the mean over this process's `count` images of it."""
    if process_count() == 1:
        return mean
    counts = torch.tensor(float(count), device=mean.device)
    return global_sum(mean * count) / global_sum(counts)


def global_rows(x: Tensor) -> Tensor:
    """The rows [b, …] of all processes, one process after the other: [B, …]."""
    if process_count() == 1:
        return x
    counts = torch.zeros(process_count(), dtype=torch.int64, device=x.device)
    counts[process_rank()] = len(x)
    sizes = global_sum(counts).tolist()
    before, after = sum(sizes[: process_rank()]), sum(sizes[process_rank() + 1 :])
    empty = [x.new_zeros(n, *x.shape[1:]) for n in (before, after)]
    return global_sum(torch.cat([empty[0], x, empty[1]]))


@torch.no_grad()
def in_shares(
    compute: Callable[[slice], Tensor], count: int, batch: int, shape: tuple[int, ...]
) -> Tensor:
    """`compute` of all of `count` rows, each of this shape, in batches that the processes deal out
    among each other. The batches are the same whatever the number of processes."""
    whole = torch.zeros(count, *shape, device=process_state().device)
    for start in range(process_rank() * batch, count, process_count() * batch):
        part = slice(start, min(start + batch, count))
        whole[part] = compute(part)
    return global_sum(whole)


def mean_gradients(parameters: Iterable[torch.nn.Parameter]) -> None:
    """Give every process the mean of the processes' gradients."""
    if process_count() == 1:
        return
    trained = list(parameters)
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in trained]
    flat = torch.cat([g.flatten() for g in gradients]) / process_count()
    dist.all_reduce(flat)
    parts = torch.split(flat, [p.numel() for p in trained])
    for parameter, part in zip(trained, parts, strict=True):
        parameter.grad = part.view_as(parameter).clone()
