"""A JSON file that holds a digest of its own content: one figure of it changed is found out.

Files of before there were digests are read by their form alone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

from d2cp.core.files import fingerprint, write_json
from d2cp.core.typed_json import read_typed
from d2cp.errors import RunError

T = TypeVar("T")
SEAL = "digest"


def write_sealed(path: Path, content: dict[str, Any]) -> None:
    if SEAL in content:
        raise ValueError(f"{SEAL!r} is the seal's own key")
    plain = json.loads(json.dumps(content))  # as it will be read: keys are text
    write_json(path, {**content, SEAL: fingerprint(plain)})


def read_sealed(path: Path, form: type[T], *, remedy: str) -> T:
    """The content, in its form and unchanged; a RunError with this remedy otherwise."""
    found: Any = read_typed(path, form, remedy=remedy)
    seal = found.pop(SEAL, None)
    if seal is not None and seal != fingerprint(found):
        raise RunError(
            f"{path} has changed since it was written",
            expected="the file as it was written",
            remedy=remedy,
        )
    return found  # type: ignore[no-any-return]
