"""Which preset suits the data at hand: the images' size and the machine decide, in one sentence."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from d2cp.config import Config
from d2cp.config.request import Request
from d2cp.config.whole import config_from_dict
from d2cp.core.run_directory import RunDirectory
from d2cp.data.images import FORMATS, UnreadableError
from d2cp.data.source import EncodedSource
from d2cp.data.table import Table
from d2cp.errors import ConfigError

SMALL = 48  # pixels: up to here the digits' backbone (28 px) still sees what a person sees
LOOKED_AT = 32  # images whose size is read


@dataclass(frozen=True)
class PresetChoice:
    preset: str
    reason: str

    def __str__(self) -> str:
        return f"preset {self.preset}: {self.reason}"


def usual_side(table: Table) -> int | None:
    """The median shorter side of a few images spread over the table; None if none can be read.
    Only headers are read."""
    source = table.source
    if not isinstance(source, EncodedSource):
        return int(source.side) if hasattr(source, "side") else None
    sides = []
    for row in np.unique(np.linspace(0, len(table) - 1, min(LOOKED_AT, len(table))).astype(int)):
        try:
            with Image.open(io.BytesIO(source.read(int(row))), formats=FORMATS) as image:
                sides.append(min(image.size))
        except (UnreadableError, OSError, ValueError, Image.DecompressionBombError):
            continue
    return int(np.median(sides)) if sides else None


def has_accelerator() -> bool:
    import torch

    return torch.cuda.is_available()


def choose_preset(side: int | None, accelerator: bool) -> PresetChoice:
    """Small images: `demo`. Photographs: `photo64` with a GPU, else `photo-cpu`."""
    if side is not None and side <= SMALL:
        return PresetChoice("demo", f"images of {side} px")
    seen = "images whose size could not be read" if side is None else f"photographs of {side} px"
    if accelerator:
        return PresetChoice("photo64", f"{seen} and a GPU")
    return PresetChoice("photo-cpu", f"{seen}, no GPU")


def settle(request: Request, table: Table, out: Path | str | None = None) -> tuple[Config, str]:
    """The configuration, and one line that says why its preset was taken (empty if it was named).

    A run that was started goes on with its preset. The digits' backbone on photographs is refused
    unless it was asked for by name.
    """
    side, said = usual_side(table), ""
    preset = request.preset
    if preset is None:
        choice = _preset_started(out) or choose_preset(side, has_accelerator())
        preset, said = choice.preset, str(choice)
    config = request.config(preset)
    if (
        config.backbone == "embedded"
        and side is not None
        and side > SMALL
        and not request.names("backbone")
    ):
        other = choose_preset(side, has_accelerator()).preset
        raise ConfigError(
            f"preset {preset} has the digits' backbone (28 px), and these are images of {side} px",
            expected="a backbone that can read photographs",
            remedy=f"use --preset {other} (or no --preset), or insist with --backbone embedded",
        )
    return config, said


def as_started(out: Path | str) -> Config | None:
    """The whole configuration of the run that was started there."""
    values = _recorded(out)
    return None if values is None else config_from_dict(values)


def _preset_started(out: Path | str | None) -> PresetChoice | None:
    preset = (_recorded(out) or {}).get("preset") if out is not None else None
    return None if preset is None else PresetChoice(str(preset), "as this run was started")


def _recorded(out: Path | str) -> dict[str, Any] | None:
    if not (Path(out) / "run.json").is_file():
        return None
    return RunDirectory(out).description.get("config")
