"""Frozen features depend on no seed: the run of a seed takes over those of the runs beside it.

The identity of the stage holds the seed, as that of every stage. So a run beside this one has the
features that are wanted if its data are the same and it has what this run would have with its seed.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

from d2cp.core.files import sha256
from d2cp.core.run_directory import RunDirectory
from d2cp.errors import D2CPError
from d2cp.pipeline.context import Context

SEEDS = "seeds"  # the folder in which `compare` and `reproduce` keep a run for every seed


def take_over(context: Context, file: str, folder: Path) -> str:
    """Put a sibling's `file` of the features stage into `folder`: the name of the sibling, or an
    empty string where none has it."""
    own = context.run.path
    if own.parent.name != SEEDS:
        return ""
    for path in sorted(other for other in own.parent.iterdir() if other.name != own.name):
        try:
            if _taken(context, RunDirectory(path), file, folder / file):
                return path.name
        except (D2CPError, OSError, KeyError):  # it is being written, or damaged
            (folder / file).unlink(missing_ok=True)
    return ""


def _taken(context: Context, other: RunDirectory, file: str, target: Path) -> bool:
    if not (other.has("data") and other.has("features")):
        return False
    seed = other.description["config"]["seed"]
    there = replace(context, run=other, config=replace(context.config, seed=seed))
    same = there.inputs("data", context.run.data["fingerprint"])
    manifest = other.manifest("features")
    if other.manifest("data")["inputs"] != same or manifest["inputs"] != there.inputs("features"):
        return False
    _link(other.path / "features" / file, target)
    if sha256(target) == manifest["files"][file]["sha256"]:
        return True
    target.unlink()
    return False


def _link(source: Path, target: Path) -> None:
    """Artifacts are replaced, never changed: two runs may have one file. Not every disk can."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
