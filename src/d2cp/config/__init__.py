"""Every choice of a run: one frozen dataclass a stage, presets in TOML, strict keys. No torch."""

from d2cp.config.whole import Config, config_from_dict, load_config, preset_names

__all__ = ["Config", "config_from_dict", "load_config", "preset_names"]
