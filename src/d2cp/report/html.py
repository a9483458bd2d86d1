"""Templates → one HTML file: escaped, with its own style and script and nothing from outside."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from d2cp.report import words


def environment() -> Environment:
    """Everything a run says is text: escaping is on for every template."""
    made = Environment(
        loader=PackageLoader("d2cp.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for name in ("visible", "percent", "interval", "duration", "phrase", "shell_lines"):
        made.filters[name] = getattr(words, name)
    made.filters["counted"] = words.count
    made.globals["split_words"] = words.SPLIT_WORDS
    return made


def render(template: str, values: Mapping[str, Any]) -> str:
    style, script = _asset("style.css"), _asset("script.js")
    return (
        environment()
        .get_template(template)
        .render(
            **values,
            style=Markup(style),
            script=Markup(script),
            policy=policy(style, script),
        )
    )


def policy(style: str, script: str) -> str:
    """Content-security policy: our own style and script by their hashes, pictures in the file,
    and nothing else, from anywhere."""
    return (
        f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; "
        f"script-src '{_hash(script)}'; base-uri 'none'; form-action 'none'"
    )


def embedded_json(value: Any) -> Markup:
    """JSON for a script element: ASCII, and no character that could end the element."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _asset(name: str) -> str:
    return (files("d2cp.report") / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
