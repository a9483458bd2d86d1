"""The device and the precision that everything runs with: the one place that makes accelerate's
objects."""

from __future__ import annotations

import atexit
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from accelerate import Accelerator, PartialState
from accelerate.state import AcceleratorState
from accelerate.utils import DistributedDataParallelKwargs

from d2cp.errors import ConfigError

SIZES = ("WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE")
WAIT = timedelta(days=1)  # the main process mines and draws alone; the others must not give up


def use_device(name: str | None = None) -> None:
    """Run on `cpu`, `cuda`, `cuda:1` or `mps`; by default on what the machine has.

    Also makes this process one of those that were launched together.
    """
    device = None if name is None else _existing(name)
    if device is None and _asked_for_cpu():
        device = torch.device("cpu")
    if PartialState._shared_state:
        current = PartialState().device
        if device is None or _same(device, current):
            return
        if PartialState().num_processes > 1:
            raise ConfigError(
                f"--device {name} in a process that already works on {current}",
                expected="one device for the life of a process that others wait for",
            )
        AcceleratorState._reset_state(reset_partial_state=True)
    on_cpu = device.type == "cpu" if device else not torch.accelerator.is_available()
    asked = _launched()
    if asked > 1 and device is not None and device.index is not None:
        raise ConfigError(
            f"--device {name} for {asked} processes",
            expected="a device without a number: each process takes its own",
            remedy=f"--device {device.type}, and CUDA_VISIBLE_DEVICES to choose among them",
        )
    state = PartialState(cpu=on_cpu, timeout=WAIT)
    if state.num_processes > 1:
        atexit.register(_part)
    if asked != state.num_processes:
        raise ConfigError(
            f"{asked} processes were started, but they cannot work together on {state.device}",
            expected="processes on CUDA devices or on the CPU",
            remedy="add --device cpu, or start one process",
        )
    if device is not None and state.num_processes == 1:
        state.device = device


def _part() -> None:
    """Leave the other processes while the interpreter still lives: a thread of theirs that wants
    something of an interpreter on its way out ends the process with SIGABRT."""
    if dist.is_initialized():
        dist.destroy_process_group()


def _same(wanted: torch.device, current: torch.device) -> bool:
    """A device without a number is met by any of its kind."""
    return wanted == current or (wanted.type == current.type and wanted.index is None)


def process_state() -> PartialState:
    """accelerate's record of this process, its fellows and its device."""
    if not PartialState._shared_state:
        use_device()
    return PartialState()


def make_accelerator(precision: str = "no") -> Accelerator:
    """An Accelerator of this precision on the device in use. accelerate keeps its state for the
    life of the process: a stage that wants another precision than the one before clears it."""
    require_precision(precision)
    AcceleratorState._reset_state(reset_partial_state=False)
    # Buffers (running means of batch normalisation) are made from the whole batch in every process.
    alike = DistributedDataParallelKwargs(broadcast_buffers=False)
    return Accelerator(mixed_precision=precision, kwargs_handlers=[alike])


def require_precision(precision: str) -> None:
    """Refuse a precision that the device in use does not have."""
    device = process_state().device
    if precision == "fp16" and device.type == "cpu":
        raise ConfigError(
            "precision fp16 on the CPU",
            expected="fp16 with a GPU",
            remedy="--precision bf16 or no, or another --device",
        )
    if precision == "bf16" and device.type == "cuda" and not torch.cuda.is_bf16_supported():
        raise ConfigError(
            f"precision bf16 on {torch.cuda.get_device_name(device)}",
            expected="a GPU that computes in bf16",
            remedy="--precision fp16 or no",
        )


def _existing(name: str) -> torch.device:
    """The device of this name, where the machine has it."""
    have = ["cpu"]
    if torch.cuda.is_available():
        have += ["cuda", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
    if torch.backends.mps.is_available():
        have += ["mps"]
    if name not in have:
        raise ConfigError(
            f"--device {name}",
            expected=f"a device of this machine: {', '.join(have)}",
            remedy="d2cp doctor tells what PyTorch finds",
        )
    return torch.device(name)


def _launched() -> int:
    """How many processes were started together."""
    return max([1, *(int(os.environ[name]) for name in SIZES if os.environ.get(name))])


def _asked_for_cpu() -> bool:
    """Whether `accelerate launch --cpu` started this process. It starts one, whatever number of
    processes it was told, so that number is refused here rather than ignored."""
    if os.environ.get("ACCELERATE_USE_CPU", "").lower() not in ("1", "true"):
        return False
    if "MASTER_ADDR" in os.environ and not any(os.environ.get(name) for name in SIZES):
        raise ConfigError(
            "accelerate launch --cpu was asked for several processes and started one",
            expected="as many processes as were asked for",
            remedy="torchrun --nproc_per_node N -m d2cp …, or "
            "accelerate launch --multi_gpu --num_processes N -m d2cp … --device cpu",
        )
    return True
