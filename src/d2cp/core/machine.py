"""What a result depends on besides code and data: versions, device, threads."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from d2cp import __version__

PACKAGES = (
    "torch",
    "transformers",
    "diffusers",
    "accelerate",
    "safetensors",
    "numpy",
    "scipy",
    "scikit-learn",
    "Pillow",
)


def package_versions(names: tuple[str, ...] = PACKAGES) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def machine_class() -> str:
    """The kind of machine in a few words, such as `2 CPU cores, no accelerator`."""
    import torch

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if torch.cuda.is_available():
        return f"{torch.cuda.device_count()} x {torch.cuda.get_device_name(0)}, {cores} CPU cores"
    if torch.backends.mps.is_available():
        return f"Apple GPU, {cores} CPU cores"
    return f"{cores} CPU cores, no accelerator"


def describe() -> dict[str, Any]:
    import torch

    from d2cp.core.device import process_state
    from d2cp.core.processes import process_count

    return {
        "d2cp": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "machine": machine_class(),
        "device": str(process_state().device),
        "processes": process_count(),
        "threads": torch.get_num_threads(),
        "packages": package_versions(),
    }
