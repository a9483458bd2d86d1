"""The whole configuration of a run: one frozen dataclass a stage, presets in TOML, strict keys."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from d2cp.config.debias import DebiasConfig
from d2cp.config.disentangle import DisentangleConfig
from d2cp.config.environments import EnvironmentsConfig
from d2cp.config.mine import MineConfig
from d2cp.config.scan import ScanSettings
from d2cp.config.strict import build, merge, parse_assignment, unknown_key
from d2cp.core.files import bounded_text
from d2cp.errors import ConfigError

MAX_BYTES = 2**24  # of a settings file


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    """What `d2cp run` does. The limits bound the images used: of `train`, of `val`, and of each
    other split (0: all)."""

    seed: int = 0  # everything random follows from it
    preset: str = "demo"
    backbone: str = "embedded"  # `embedded`, a local folder, or a name on the Hugging Face hub
    train_limit: int = 0  # at most so many training images; 0: all
    val_limit: int = 0  # at most so many validation images; 0: all
    test_limit: int = 0  # at most so many images of each other split; 0: all
    scan: ScanSettings = dataclasses.field(default_factory=ScanSettings)
    disentangle: DisentangleConfig = dataclasses.field(default_factory=DisentangleConfig)
    mine: MineConfig = dataclasses.field(default_factory=MineConfig)
    environments: EnvironmentsConfig = dataclasses.field(default_factory=EnvironmentsConfig)
    debias: DebiasConfig = dataclasses.field(default_factory=DebiasConfig)

    def __post_init__(self) -> None:
        for name in ("train_limit", "val_limit", "test_limit"):
            if getattr(self, name) < 0:
                raise ConfigError(
                    f"{name} = {getattr(self, name)}", expected="0 (all images) or a number above"
                )

    def to_dict(self) -> dict[str, Any]:
        return _plain(dataclasses.asdict(self))  # type: ignore[no-any-return]


def preset_names() -> list[str]:
    folder = files("d2cp.config.presets")
    return sorted(p.name[:-5] for p in folder.iterdir() if p.name.endswith(".toml"))


def load_config(
    preset: str = "demo",
    *,
    file: Path | None = None,
    assignments: Sequence[str] = (),
    overrides: Mapping[str, Any] | None = None,
) -> Config:
    """A preset, then a TOML file, then `stage.key=value` assignments, then keyword overrides."""
    values = _preset(preset)
    if file is not None:
        values = merge(values, read_settings(file))
    for text in assignments:
        values = merge(values, parse_assignment(text))
    values = merge(values, overrides or {})
    return build(Config, {**values, "preset": preset})


def read_settings(file: Path) -> dict[str, Any]:
    """A person's TOML file, its keys not checked yet."""
    try:
        return tomllib.loads(bounded_text(file, MAX_BYTES))
    except (OSError, ValueError, RecursionError) as error:  # bad UTF-8 or TOML, nested deeply
        raise ConfigError(f"{file}: {error}", expected="a readable TOML file") from error


def config_from_dict(values: Mapping[str, Any]) -> Config:
    """The inverse of `Config.to_dict`."""
    return build(Config, values)


def _preset(name: str) -> dict[str, Any]:
    if name not in preset_names():
        raise unknown_key(name, preset_names(), "preset")
    values = tomllib.loads(
        (files("d2cp.config.presets") / f"{name}.toml").read_text(encoding="utf-8")
    )
    base = values.pop("extends", None)
    return merge(_preset(base), values) if base else values


def _plain(value: Any) -> Any:
    """Tuples as lists, so that a configuration equals itself after a trip through JSON."""
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value
