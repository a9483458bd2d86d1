"""All stages of a run, each declared once: what it reads and depends on, what it writes, and where
its summary is shown. `Context.inputs`, `d2cp show` and the report read this list; no torch here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from d2cp.config import Config


@dataclass(frozen=True, kw_only=True)
class Stage:
    """`RUN/<name>/` holds what it `writes`."""

    name: str
    after: tuple[str, ...] = ()  # stages whose artifacts it reads
    settings: Callable[[Config], Any] = lambda config: None  # all of the configuration it reads
    writes: tuple[str, ...]
    summary: str = ""  # JSON file that `d2cp show RUN --json` gives under stages.<name>
    report: str = ""  # heading under which the report lists that summary


STAGES = (
    Stage(name="data", writes=("summary.json", "table.csv")),
    Stage(name="scan", writes=("findings.json", "scores.csv", "scan.safetensors")),
    Stage(
        name="disentangle",
        after=("data",),
        settings=lambda config: asdict(config.disentangle),
        writes=("model.json", "model.safetensors", "concepts.safetensors"),
    ),
    Stage(
        name="mine",
        after=("disentangle",),
        settings=lambda config: asdict(config.mine),
        writes=("mined.json", "mined.safetensors", "pseudo.csv", "summary.json", "pictures/"),
    ),
    Stage(
        name="features",
        after=("data",),
        settings=lambda config: [config.backbone, config.debias.image_size, config.debias.resize],
        writes=("features.safetensors",),
    ),
    Stage(
        name="environments",
        after=("mine", "features"),
        settings=lambda config: [asdict(config.environments), config.debias.pseudo_source],
        writes=("bits.csv", "summary.json"),
        summary="summary.json",
        report="Environments (XRM)",
    ),
    Stage(
        name="erm",
        after=("data", "mine", "environments"),
        settings=lambda config: [asdict(config.debias), config.backbone],
        writes=("model.safetensors", "debias.json"),
    ),
    Stage(
        name="debias",
        after=("data", "mine", "environments"),
        settings=lambda config: [asdict(config.debias), config.backbone],
        writes=("model.safetensors", "debias.json"),
    ),
    Stage(
        name="evaluate",
        after=("mine", "erm", "debias"),
        writes=("results.json", "predictions.csv", "choice.json", "gradcam/"),
    ),
)


def stage(name: str) -> Stage:
    return next(found for found in STAGES if found.name == name)
