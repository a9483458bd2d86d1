"""What every setting means, read from the dataclasses themselves: the text under a field, or the
comment beside it."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import io
import textwrap
import tokenize
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin, get_type_hints


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    name: str
    """As `--set` takes it: `debias.epochs`."""
    kind: str
    default: Any
    note: str


def explain(cls: type, where: str = "") -> Iterator[Setting]:
    """Every setting of a configuration class, then those of nested classes under their own names:
    a TOML table is written in one piece."""
    hints, notes = get_type_hints(cls), field_notes(cls)
    own = sorted(dataclasses.fields(cls), key=lambda f: dataclasses.is_dataclass(hints[f.name]))
    for field in own:
        hint, name = hints[field.name], f"{where}{field.name}"
        if dataclasses.is_dataclass(hint):
            yield from explain(hint, f"{name}.")  # type: ignore[arg-type]
        else:
            yield Setting(
                name=name,
                kind=kind_of(hint),
                default=_default(field),
                note=notes.get(field.name, ""),
            )


def field_notes(cls: type) -> dict[str, str]:
    """A field's own text, on one line. A comment speaks for a field when it stands beside it."""
    source = textwrap.dedent(inspect.getsource(cls))
    body = ast.parse(source).body[0].body  # type: ignore[attr-defined]
    beside = _comments(source)
    notes = {}
    for node, after in zip(body, [*body[1:], None], strict=True):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            text = str(after.value.value)
        else:
            text = beside.get(node.end_lineno or node.lineno, "")
        notes[node.target.id] = " ".join(text.split())
    return notes


def _comments(source: str) -> dict[int, str]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {t.start[0]: t.string.lstrip("# ") for t in tokens if t.type == tokenize.COMMENT}


def kind_of(hint: Any) -> str:
    """A type as a person writes it in TOML."""
    if get_origin(hint) is Literal:
        return " | ".join(f'"{choice}"' for choice in get_args(hint))
    if get_origin(hint) is tuple:
        return f"list of {kind_of(get_args(hint)[0])}"
    if get_args(hint) and get_origin(hint) is not dict:
        parts = [kind_of(part) for part in get_args(hint) if part is not type(None)]
        return " | ".join(parts)
    names = {int: "whole number", float: "number", str: "text", bool: "true | false"}
    return names.get(hint, str(getattr(hint, "__name__", hint)))


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return None
