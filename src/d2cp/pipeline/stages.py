"""All stages of a run, each declared once: what it reads and depends on, what it writes, and where
its summary is shown. `Context.inputs`, `d2cp show` and the report read this list; no torch here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from d2cp.config import Config
from d2cp.config.scan import ScanSettings


@dataclass(frozen=True, kw_only=True)
class Stage:
    """`RUN/<name>/` holds what it `writes`."""

    name: str
    after: tuple[str, ...] = ()  # stages whose artifacts it reads
    settings: Callable[[Config], Any] = lambda config: None  # all of the configuration it reads
    reads: tuple[str, ...] = ()  # names in the configuration that its result hangs on
    writes: tuple[str, ...]
    summary: str = ""  # JSON file that `d2cp show RUN --json` gives under stages.<name>
    report: str = ""  # heading under which the report lists that summary


def _findings(config: Config) -> int:
    """Concepts that a scan gives at most."""
    return config.scan.concepts if config.scan.use else 0


def _kept(config: Config) -> list[float]:
    """Where all patches are kept, features are what they were before there was a choice."""
    return [] if config.debias.keep_patches == 1 else [config.debias.keep_patches]


def _backbone_view(config: Config) -> list[Any]:
    """How a frozen backbone sees an image."""
    debias = config.debias
    return [config.backbone, debias.image_size, debias.resize, *_kept(config)]


STAGES = (
    Stage(
        name="data",
        reads=("seed", "train_limit", "val_limit", "test_limit", "disentangle.size"),
        writes=("summary.json", "table.csv"),
    ),
    Stage(
        name="scan",
        after=("data",),
        settings=lambda config: config.scan.of_lenses(),
        reads=("seed", *(f"scan.{name}" for name in ScanSettings().of_lenses())),
        writes=("findings.json", "scores.csv", "scan.safetensors", "pictures/"),
    ),
    Stage(
        name="disentangle",
        after=("data", "scan"),  # the scan where `scan.use` is on
        settings=lambda config: [
            asdict(config.disentangle),
            config.scan.use * config.scan.concepts,
        ],
        reads=("seed", "disentangle", "scan.use", "scan.concepts"),
        writes=("model.json", "model.safetensors", "concepts.safetensors"),
    ),
    Stage(
        name="mine",
        after=("scan", "disentangle"),  # one of them, or both
        settings=lambda config: asdict(config.mine),
        reads=("seed", "mine", "debias.recolour"),
        writes=(
            *("mined.json", "mined.safetensors", "pseudo.csv", "summary.json", "pictures/"),
            "recolour.json",  # where debias.recolour asks for it
        ),
    ),
    Stage(
        name="features",
        after=("data",),
        settings=_backbone_view,
        reads=("backbone", "debias.image_size", "debias.resize", "debias.keep_patches"),
        writes=("features.safetensors",),
    ),
    Stage(
        name="transplants",
        after=("scan", "mine"),
        settings=_backbone_view,
        reads=(
            *("seed", "backbone", "debias.image_size", "debias.resize", "debias.keep_patches"),
            "debias.transplants",
        ),
        writes=("transplants.safetensors", "exchanged.png"),
    ),
    Stage(
        name="environments",
        after=("mine", "features"),
        settings=lambda config: [asdict(config.environments), config.debias.pseudo_source],
        reads=("seed", "environments", "debias.pseudo_source"),
        writes=("bits.csv", "summary.json"),
        summary="summary.json",
        report="Environments (XRM)",
    ),
    Stage(
        name="erm",
        after=("data", "features"),  # plain training: no finding has a part in it
        settings=lambda config: [asdict(config.debias), config.backbone],
        reads=("seed", "backbone", "debias"),
        writes=("model.safetensors", "debias.json"),
    ),
    Stage(
        name="debias",
        after=("data", "mine", "environments", "transplants"),  # the last where they are used
        settings=lambda config: [asdict(config.debias), config.backbone],
        reads=("seed", "backbone", "debias"),
        writes=("model.safetensors", "debias.json", "evidence.safetensors"),
    ),
    Stage(
        name="evaluate",
        after=("scan", "mine", "erm", "debias"),
        writes=("results.json", "predictions.csv", "choice.json", "reliance.json", "gradcam/"),
    ),
)


def settled(has: Callable[[str], bool]) -> set[str]:
    """Names of the configuration that have taken effect in a run with these stages."""
    return {name for made in STAGES if has(made.name) for name in made.reads}


def stage(name: str) -> Stage:
    return next(found for found in STAGES if found.name == name)
