"""`d2cp doctor`: is this machine ready, and if not, what to do."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

Level = Literal["ok", "note", "fault"]


@dataclass(frozen=True)
class Finding:
    name: str
    level: Level
    text: str
    remedy: str = ""


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print findings as JSON.")] = False,
) -> None:
    """Versions, device, threads, hub, disk and known traps; exit code 1 when one is broken."""
    findings = examine()
    if as_json:
        typer.echo(json.dumps([asdict(f) for f in findings], indent=2))
    else:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, show_header=False, padding=(0, 1))
        style = {"ok": "green", "note": "yellow", "fault": "bold red"}
        for f in findings:
            text = Text(f.text)
            if f.remedy:
                text.append(f"\nto do: {f.remedy}", style="italic")
            table.add_row(Text(f.level, style=style[f.level]), Text(f.name), text)
        Console().print(table)
    if any(f.level == "fault" for f in findings):
        raise typer.Exit(1)


def examine() -> list[Finding]:
    findings = [_python(), *_packages(), _torchvision()]
    if all(f.level != "fault" for f in findings):
        findings.append(_device())
    return [*findings, _hub(), _disk()]


def _python() -> Finding:
    return Finding("python", "ok", sys.version.split()[0])


def _packages() -> list[Finding]:
    from d2cp.core.machine import PACKAGES, package_versions

    found = package_versions()
    have = ", ".join(f"{n} {v}" for n, v in found.items() if v)
    missing = [n for n in PACKAGES if not found[n]]
    findings = [Finding("packages", "ok", have)]
    if missing:
        findings.append(
            Finding("packages", "fault", f"missing: {', '.join(missing)}", "pip install d2cp")
        )
    extras = {
        "onnx": ("onnx", "onnxruntime"),
        "hub": ("datasets",),
        "track": ("tensorboard",),
    }
    for extra, modules in extras.items():
        absent = [m for m in modules if importlib.util.find_spec(m) is None]
        if absent:
            text = f"{', '.join(absent)} not installed"
            findings.append(Finding(f"extra {extra}", "note", text, f"pip install 'd2cp[{extra}]'"))
    return findings


def _torchvision() -> Finding:
    """A torchvision built for another torch breaks transformers and diffusers by being there."""
    if importlib.util.find_spec("torchvision") is None:
        return Finding("torchvision", "ok", "not installed (not needed)")
    try:
        importlib.import_module("torchvision")
    except Exception as error:
        return Finding(
            "torchvision",
            "fault",
            f"installed but broken: {error}; transformers and diffusers then fail too",
            "pip uninstall torchvision",
        )
    return Finding("torchvision", "ok", "installed and importable")


def _device() -> Finding:
    import torch

    from d2cp.core.machine import machine_class

    return Finding("device", "ok", f"{machine_class()}, {torch.get_num_threads()} torch threads")


def _hub() -> Finding:
    if os.environ.get("HF_HUB_OFFLINE", "").lower() in {"1", "true", "yes", "on"}:
        return Finding("hub", "note", "HF_HUB_OFFLINE is set: backbones come from local folders")
    from d2cp.core.network import hub_within_reach

    if hub_within_reach():
        return Finding("hub", "ok", "the Hugging Face hub answers")
    return Finding(
        "hub",
        "note",
        "the Hugging Face hub cannot be reached",
        "pass backbones as local folders: --backbone FOLDER, or use the embedded one",
    )


def _disk() -> Finding:
    from d2cp.data.cache import default_cache_dir

    folder: Path = default_cache_dir()
    existing = next(p for p in (folder, *folder.parents) if p.exists())
    free = shutil.disk_usage(existing).free / 2**30
    text = f"image cache {folder}, {free:.1f} GiB free"
    if not os.access(existing, os.W_OK):
        return Finding("disk", "fault", f"{text}, not writable", "set D2CP_CACHE to another folder")
    if free < 2:
        return Finding("disk", "note", text, "free some space or set D2CP_CACHE to another disk")
    return Finding("disk", "ok", text)
