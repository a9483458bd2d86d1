"""All methods by name: those of the package, and those that other packages bring by entry point."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Literal

from d2cp.compare.contract import Method
from d2cp.compare.mined_groups import SUFFIX, OnMinedGroups
from d2cp.config.strict import unknown_key
from d2cp.errors import ConfigError

Groups = Literal["true", "mined", "both"]
ENTRY_POINTS = "d2cp.methods"
# in the order of the paper's Table 1: controls, with train groups, without, D2CP
BUILT_IN = {
    "erm": "erm:Erm",
    "resample": "resample:Resample",
    "resample_solved": "resample_solved:ResampleSolved",
    "group_dro": "group_dro:GroupDro",
    "pde": "pde:Pde",
    "cpt": "cpt:Cpt",
    "elrep": "elrep:ElRep",
    "crm": "crm:Crm",
    "dfr": "dfr:Dfr",
    "jtt": "jtt:Jtt",
    "cnc": "cnc:Cnc",
    "c_adapter": "c_adapter:CAdapter",
    "masktune": "masktune:MaskTune",
    "ula": "ula:ULa",
    "gic": "gic:Gic",
    "xrm": "xrm:Xrm",
    "sas": "sas:Sas",
    "ppa": "ppa:Ppa",
    "gerne": "gerne:Gerne",
    "d2cp": "d2cp:D2cp",
}


@cache
def methods() -> dict[str, Method]:
    """Every method there is. A name of the package cannot be taken by another package."""
    found: dict[str, Method] = {}
    for place in BUILT_IN.values():
        module, name = place.split(":")
        method: Method = getattr(import_module(f"d2cp.methods.{module}"), name)()
        found[method.spec.name] = method
    for entry in entry_points(group=ENTRY_POINTS):
        method = entry.load()()
        if method.spec.name in found:
            raise ConfigError(
                f"the entry point {entry.value!r} brings a method {method.spec.name!r}",
                expected="a name that is not taken",
                remedy="rename it in its Spec, or uninstall one of the packages",
            )
        found[method.spec.name] = method
    return found


def method(name: str) -> Method:
    """By name; `NAME@mined` is the method NAME on mined groups."""
    known = methods()
    plain = name.removesuffix(SUFFIX)
    if plain not in known:
        raise unknown_key(plain, set(known), "methods")
    found = known[plain]
    if plain == name:
        return found
    if not found.spec.needs_groups:
        raise ConfigError(
            f"--methods {name}: {found.spec.title} asks for no group labels",
            expected=f"{SUFFIX} on a method that does: "
            + ", ".join(n for n, m in known.items() if m.spec.needs_groups),
            remedy=f"use {plain}",
        )
    return OnMinedGroups(found)


def chosen(names: str, groups: Groups = "true") -> list[Method]:
    """`all`, or names with commas between them; `groups` says which groups those get that ask."""
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if not wanted:
        raise ConfigError("--methods names no method", expected="all, or for example erm,jtt,d2cp")
    found: dict[str, Method] = {}
    for name in methods() if wanted == ["all"] else wanted:
        plain = method(name)
        variants = [plain]
        if plain.spec.needs_groups and groups != "true":
            mined = method(name + SUFFIX)
            variants = [mined] if groups == "mined" else [plain, mined]
        found |= {m.spec.name: m for m in variants}
    return list(found.values())
