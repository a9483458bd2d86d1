"""Changes to bytes, text and JSON values, each drawn from a generator: shared by fuzz, soak and the
tests of damaged files."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

ODD_NUMBERS = (0, -1, 2**31, 2**63, -(2**63) - 1, 10**30, 10**400, 1e308, -0.0, 0.5, 1e-320)
ODD_TEXTS = (
    *(
        "",
        " ",
        "\0",
        "\n",
        "\ud800",
        "\u202e",
        "../../etc/passwd",
        "/etc/passwd",
        "nan",
        "-1",
        "1e9",
    ),
    *("<img src=x onerror=alert(1)>", "x" * 5000, "0,0", "7,9", "'; DROP", "{{ 7 * 7 }}", "名前"),
)
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, [], {}, [[]], [None], {"": None}, {"a": {"b": []}}),
    *(*ODD_NUMBERS, *ODD_TEXTS, float("nan"), float("inf")),
)
ODD_BYTES = (
    b"",
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"{",
    b"[" * 100_000,
    b"\x80\x04.",
    b"PK\x03\x04",
)


def mutate_bytes(data: bytes, draw: random.Random) -> bytes:
    """One to four changes: flipped bits, cuts, repeats, odd pieces, swapped blocks."""
    for _ in range(draw.randint(1, 4)):
        data = draw.choice(_BYTE_CHANGES)(data, draw)
    return data


def _flip(data: bytes, draw: random.Random) -> bytes:
    if not data:
        return data
    changed = bytearray(data)
    for _ in range(draw.randint(1, 8)):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _cut(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randint(0, len(data))]


def _without(data: bytes, draw: random.Random) -> bytes:
    start = draw.randint(0, len(data))
    return data[:start] + data[start + draw.randint(1, 64) :]


def _insert(data: bytes, draw: random.Random) -> bytes:
    start = draw.randint(0, len(data))
    piece = draw.choice((*ODD_BYTES, draw.randbytes(draw.randint(1, 32))))
    return data[:start] + piece + data[start:]


def _repeat(data: bytes, draw: random.Random) -> bytes:
    start = draw.randint(0, len(data))
    return data[:start] + data[start : start + 40] * draw.randint(1, 50) + data[start:]


def _digits(data: bytes, draw: random.Random) -> bytes:
    """A number in text becomes another one."""
    places = [i for i, byte in enumerate(data[:20_000]) if 48 <= byte <= 57]
    if not places:
        return _flip(data, draw)
    place = draw.choice(places)
    number = draw.choice((b"-1", b"99999999999999999999", b"1e400", b"nan", b"0", b'"x"', b""))
    return data[:place] + number + data[place + 1 :]


def _words(data: bytes, draw: random.Random) -> bytes:
    """An odd text in the place of a separator."""
    places = [i for i, byte in enumerate(data[:20_000]) if byte in b',;\n"=[]{}:']
    if not places:
        return _insert(data, draw)
    place = draw.choice(places)
    text = draw.choice(ODD_TEXTS).encode("utf-8", "surrogatepass")
    return data[:place] + draw.choice((text, b",", b'"', b"\n", b"\r", b"[")) + data[place + 1 :]


_BYTE_CHANGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(_flip, _cut, _without, _insert, _repeat, _digits, _words),
)


def mutate_value(value: Any, draw: random.Random) -> Any:
    """A JSON-like value with one place of it changed: replaced, taken away, doubled or renamed."""
    if not isinstance(value, (dict, list)) or not value or draw.random() < 0.15:
        return draw.choice(ODD_VALUES)
    if isinstance(value, list):
        place = draw.randrange(len(value))
        kind = draw.random()
        if kind < 0.15:
            return value[:place] + value[place + 1 :]
        if kind < 0.25:
            return [*value, value[place]]
        return [mutate_value(v, draw) if i == place else v for i, v in enumerate(value)]
    key = draw.choice(list(value))
    kind = draw.random()
    if kind < 0.15:
        return {k: v for k, v in value.items() if k != key}
    if kind < 0.25:
        return {(draw.choice(ODD_TEXTS) if k == key else k): v for k, v in value.items()}
    return {k: mutate_value(v, draw) if k == key else v for k, v in value.items()}


def mutate_json(data: bytes, draw: random.Random) -> bytes:
    """A JSON file: another value in half of the cases, other bytes in the rest."""
    if draw.random() < 0.3:
        return mutate_bytes(data, draw)
    try:
        changed = mutate_value(json.loads(data), draw)
    except (ValueError, RecursionError):  # it is damaged already
        return mutate_bytes(data, draw)
    for _ in range(draw.randint(0, 2)):
        changed = mutate_value(changed, draw)
    return json.dumps(changed).encode()
