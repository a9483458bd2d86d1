"""JSON that a program wrote and anybody may have changed: read only when it has the declared form.

The form is a type: TypedDict, list, dict, tuple, Literal, union, str (Annotated with a pattern),
int, float, bool. Keys that a TypedDict does not name are let through unread.
"""

from __future__ import annotations

import math
import types
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from d2cp.core.files import read_json
from d2cp.errors import RunError

T = TypeVar("T")
LARGEST = 2**63  # what an array can count with
SHOWN = 60  # characters of a wrong value


class FormError(ValueError):
    """A value that has not the declared form, and where it lies."""


def read_typed(path: Path, form: type[T], *, remedy: str) -> T:
    """The file's content; a RunError with this remedy where it has not the form."""
    try:
        found = read_json(path)
        check(found, form)
    except FormError as error:
        raise RunError(
            f"{path} is not as d2cp writes it: {error}",
            expected="the file as it was written",
            remedy=remedy,
        ) from None
    except RunError as error:
        raise RunError(error.found, expected=error.expected, remedy=remedy) from error
    return cast(T, found)


def check(value: Any, form: Any, where: str = "") -> None:
    """Raise FormError at the first place that differs from the form."""
    origin, arguments = get_origin(form), get_args(form)
    if form is Any:
        return
    if is_typeddict(form):
        _check_keys(value, form, where)
    elif origin is Literal:
        _require(type(value) is str and value in arguments, value, " or ".join(arguments), where)
    elif origin in (Union, types.UnionType):
        _check_union(value, arguments, where)
    elif origin is list:
        _require(type(value) is list, value, "a list", where)
        for index, item in enumerate(value):
            check(item, arguments[0], f"{where}[{index}]")
    elif origin is tuple:
        fits = type(value) is list and len(value) == len(arguments)
        _require(fits, value, f"a list of {len(arguments)}", where)
        for index, (item, own) in enumerate(zip(value, arguments, strict=True)):
            check(item, own, f"{where}[{index}]")
    elif origin is Annotated:
        fits = type(value) is str and arguments[1].fullmatch(value) is not None
        _require(fits, value, f"text like {arguments[1].pattern}", where)
    elif origin is dict:
        _require(type(value) is dict, value, "an object", where)
        for key, item in value.items():
            check(key, arguments[0], f"{where}: a key")
            check(item, arguments[1], f"{where}.{key[:SHOWN]}")
    else:
        _require(_is_plain(value, form), value, _name(form), where)


def _check_keys(value: Any, form: Any, where: str) -> None:
    _require(type(value) is dict, value, "an object", where)
    hints = get_type_hints(form, include_extras=True)
    for name, own in hints.items():
        optional = get_origin(own) is NotRequired
        if name in value:
            check(value[name], get_args(own)[0] if optional else own, f"{where}.{name}")
        elif not optional:
            raise FormError(f"{where.lstrip('.') or 'the file'} has no {name!r}")


def _check_union(value: Any, choices: tuple[Any, ...], where: str) -> None:
    for choice in choices:
        try:
            return check(value, choice, where)
        except FormError:
            continue
    _require(False, value, " or ".join(_name(choice) for choice in choices), where)


def _is_plain(value: Any, form: Any) -> bool:
    """A boolean is no number, a whole number is a float, and all numbers fit into an array."""
    if form is float:
        return type(value) in (int, float) and abs(value) < LARGEST and math.isfinite(value)
    if form is int:
        return type(value) is int and abs(value) < LARGEST
    return type(value) is form


def _require(fits: bool, value: Any, expected: str, where: str) -> None:
    if not fits:
        raise FormError(f"{where.lstrip('.') or 'the file'} is {_short(value)}, not {expected}")


def _name(form: Any) -> str:
    return "null" if form is type(None) else str(getattr(form, "__name__", form))


def _short(value: Any) -> str:
    """Of what may be a book, the start; of a number too long to print, its type."""
    if isinstance(value, (list, dict)):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value)}"
    if type(value) is int and abs(value) >= LARGEST:
        return "a number beyond 64 bits"
    return repr(value)[:SHOWN]
