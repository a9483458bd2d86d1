"""One or many processes (`accelerate launch`): the main one writes, all of them agree."""

from __future__ import annotations

from typing import TypeVar

from accelerate import PartialState
from accelerate.utils import broadcast_object_list

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
