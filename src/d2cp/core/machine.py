"""What a result depends on besides code and data: versions, device, threads."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
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
    return f"{cores} CPU core{'' if cores == 1 else 's'}, no accelerator"


@cache
def code_commit(package: Path = Path(__file__).parents[1]) -> str:
    """The commit of the checkout that runs, `-dirty` where files were changed since; empty where
    d2cp was installed otherwise: a virtual environment may lie in somebody else's repository."""
    root = package.parents[1]
    if not (root / ".git").exists():
        return ""
    asked = ["git", "-C", str(root), "describe", "--always", "--dirty", "--exclude", "*"]
    try:
        said = subprocess.run(asked, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return said.stdout.strip()


def describe() -> dict[str, Any]:
    import torch

    from d2cp.core.device import process_state
    from d2cp.core.processes import process_count

    return {
        "d2cp": __version__,
        "commit": code_commit(),
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "machine": machine_class(),
        "device": str(process_state().device),
        "processes": process_count(),
        "threads": torch.get_num_threads(),
        "packages": package_versions(),
    }
