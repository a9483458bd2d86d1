"""How two nested settings differ, a line a name: `debias.lr was 0.1, is now 0.01`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

ABSENT = object()


def flat(settings: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Dotted names."""
    made: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            made |= flat(value, f"{above}{name}.")
        else:
            made[f"{above}{name}"] = list(value) if isinstance(value, tuple) else value
    return made


def differing(then: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """name -> value then and now, ABSENT where there was or is none."""
    old, new = flat(then), flat(now)
    both = {name: (old.get(name, ABSENT), new.get(name, ABSENT)) for name in {**old, **new}}
    return {name: pair for name, pair in sorted(both.items()) if pair[0] != pair[1]}


def told(name: str, then: Any, now: Any) -> str:
    was = "did not exist" if then is ABSENT else f"was {json.dumps(then)}"
    return f"{name} {was}, " + (
        "does not exist any more" if now is ABSENT else f"is now {json.dumps(now)}"
    )
