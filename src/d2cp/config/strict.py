"""Strict loading of frozen dataclasses: a wrong key or a wrong type is an error that helps."""

from __future__ import annotations

import dataclasses
import difflib
import math
import tomllib
import types
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from d2cp.errors import ConfigError

T = TypeVar("T")
LARGEST = 2**63
SHOWN = 200  # characters of a wrong value


def build(cls: type[T], values: Mapping[str, Any], where: str = "") -> T:
    """An instance of the dataclass `cls` from nested mappings, checked key by key."""
    if not isinstance(values, Mapping):
        raise _mismatch(where or "configuration", "a table", values)
    hints = get_type_hints(cls)
    fields = {f.name for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for key in values:
        if key not in fields:
            raise unknown_key(key, fields, where)
    made = {k: _convert(hints[k], v, f"{where}.{k}".lstrip(".")) for k, v in values.items()}
    try:
        return cls(**made)
    except ValueError as error:
        raise ConfigError(f"{where or 'configuration'}: {error}") from error


def unknown_key(key: str, known: Sequence[str] | set[str], where: str) -> ConfigError:
    full = f"{where}.{key}".lstrip(".")
    return unknown_name(f"unknown key {full!r}", key, known)


def unknown_name(found: str, key: str, known: Sequence[str] | set[str]) -> ConfigError:
    """`found` says in words that there is no `key`; the nearest known one is named."""
    near = difflib.get_close_matches(key, sorted(known), n=1, cutoff=0.4)
    return ConfigError(
        found,
        expected="one of " + ", ".join(sorted(known)),
        remedy=f"did you mean {near[0]!r}?" if near else "",
    )


def _convert(hint: Any, value: Any, where: str) -> Any:
    origin = get_origin(hint)
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, Mapping):
            raise _mismatch(where, "a table", value)
        return build(hint, value, where)  # type: ignore[arg-type]
    if origin is Literal:
        if value not in get_args(hint):
            raise _mismatch(where, " | ".join(map(repr, get_args(hint))), value)
        return value
    if origin in (Union, types.UnionType):
        choices = get_args(hint)
        if value is None and type(None) in choices:
            return None
        for choice in choices:
            if choice is not type(None):
                try:
                    return _convert(choice, value, where)
                except ConfigError:
                    continue
        raise _mismatch(where, str(hint), value)
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise _mismatch(where, "a list", value)
        item = get_args(hint)[0]
        return tuple(_convert(item, v, f"{where}[{i}]") for i, v in enumerate(value))
    if type(value) is int and not abs(value) < LARGEST:
        raise _mismatch(where, "a number of at most 64 bits", value)
    if type(value) is float and not math.isfinite(value):
        raise _mismatch(where, "a finite number", value)
    if hint is float and type(value) is int:
        return float(value)
    if hint in (int, float, str, bool) and type(value) is hint:
        return value
    if origin is dict and isinstance(value, Mapping):
        return dict(value)
    raise _mismatch(where, getattr(hint, "__name__", str(hint)), value)


def _mismatch(where: str, expected: str, value: Any) -> ConfigError:
    try:
        shown = repr(value)
    except ValueError:  # a number of thousands of digits
        shown = "a number too long to print"
    if len(shown) > SHOWN:
        shown = f"{shown[:SHOWN]}…"
    return ConfigError(f"{where} = {shown} ({type(value).__name__})", expected=expected)


def parse_assignment(text: str) -> dict[str, Any]:
    """`stage.key=value` as a nested mapping; the value is TOML, or plain text."""
    name, sign, raw = text.partition("=")
    if not sign or not name.strip():
        raise ConfigError(
            f"--set {text!r}",
            expected="stage.key=value",
            remedy="for example --set debias.epochs=5",
        )
    try:
        value = tomllib.loads(f"v = {raw.strip()}")["v"]
    except (ValueError, RecursionError):  # no TOML: a word, or a number of thousands of digits
        value = raw.strip()
    return _nested(name.strip(), value)


def _nested(name: str, value: Any) -> dict[str, Any]:
    for part in reversed(name.split(".")):
        value = {part: value}
    return value  # type: ignore[no-any-return]


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`over` laid on `base`, tables merged key by key."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        merged[key] = merge(old, value) if both else value  # type: ignore[arg-type]
    return merged


def changed(config: T, changes: Mapping[str, Any]) -> T:
    """A copy of a configuration with `{"part.key": value}` laid over it, checked like the rest."""
    values: dict[str, Any] = dataclasses.asdict(config)  # type: ignore[call-overload]
    for name, value in changes.items():
        values = merge(values, _nested(name, value))
    return build(type(config), values)
