"""One or many processes (`accelerate launch`): the main one writes, all of them agree.

Each process holds a share of the batch and computes the loss of the WHOLE batch from reduced
sums. The backward of a reduction passes the gradient on unchanged, so a process ends up with the
gradient through its own images; the loop adds these up. Parameters may therefore act only before
a reduction (on a process's own images): after it, their gradient would be counted once a process.
"""

from __future__ import annotations

from typing import Any, TypeVar

import torch
import torch.distributed as dist
from accelerate import PartialState
from accelerate.utils import broadcast_object_list
from torch import Tensor

T = TypeVar("T")


def is_main() -> bool:
    return bool(PartialState().is_main_process)


def wait_for_all() -> None:
    PartialState().wait_for_everyone()


def from_main(value: T) -> T:
    """The main process's value, in every process."""
    box = [value]
    if PartialState().num_processes > 1:
        broadcast_object_list(box)
    return box[0]


def process_count() -> int:
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def process_rank() -> int:
    return dist.get_rank() if process_count() > 1 else 0


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0]


def global_sum(x: Tensor) -> Tensor:
    """Sum of `x` over the processes."""
    if process_count() == 1:
        return x
    total: Tensor = _Sum.apply(x)  # type: ignore[no-untyped-call]
    return total


def global_mean(losses: Tensor) -> Tensor:
    """Mean of per-image losses [b] over the global batch."""
    count = torch.tensor(float(len(losses)), device=losses.device)
    return global_sum(losses.sum()) / global_sum(count)
