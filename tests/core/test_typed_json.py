import json
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

import pytest

from d2cp.core.records import GroupKey, Manifest
from d2cp.core.typed_json import FormError, check, read_typed
from d2cp.errors import RunError


class Pet(TypedDict):
    name: str
    kind: Literal["cat", "dog"]
    weight: NotRequired[float | None]
    seen: dict[GroupKey, tuple[int, int]]


GOOD: dict[str, Any] = {"name": "x", "kind": "cat", "weight": 3, "seen": {"0,1": [1, 2]}, "more": 1}


def test_what_has_the_form_passes() -> None:
    check([GOOD, {k: v for k, v in GOOD.items() if k != "weight"}], list[Pet])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": 7}, "name is 7, not str"),
        ({"kind": "cow"}, "kind is 'cow', not cat or dog"),
        ({"kind": ["cat"]}, "kind is a list of 1"),
        ({"weight": True}, "weight is True"),
        ({"weight": float("nan")}, "weight is nan"),
        ({"weight": 10**400}, "beyond 64 bits"),
        ({"seen": []}, "seen is a list of 0, not an object"),
        ({"seen": {"0,1": [1]}}, "not a list of 2"),
        ({"seen": {"0,x": [1, 2]}}, "a key is '0,x'"),
        ({"seen": {"0": [1, 2.5]}}, r"seen.0\[1\] is 2.5, not int"),
    ],
    ids=str,
)
def test_the_first_fault_is_named_with_its_place(change: dict[str, Any], said: str) -> None:
    with pytest.raises(FormError, match=said):
        check({**GOOD, **change}, Pet)


def test_a_missing_key_is_named() -> None:
    with pytest.raises(FormError, match="has no 'name'"):
        check({k: v for k, v in GOOD.items() if k != "name"}, Pet)


@pytest.mark.parametrize("text", ["[" * 100_000, "1" * 6000, "{", "\xff", "[]", '{"files": 3}'])
def test_a_file_of_another_form_ends_in_its_remedy(tmp_path: Path, text: str) -> None:
    path = tmp_path / "manifest.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(RunError, match="do this") as error:
        read_typed(path, Manifest, remedy="do this")
    assert str(path) in error.value.found


def test_a_folder_in_the_place_of_a_file_ends_in_its_remedy(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="do this"):
        read_typed(tmp_path, Manifest, remedy="do this")


def test_what_the_program_writes_has_the_form(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    entry = {"bytes": 3, "sha256": "00"}
    whole = {"stage": "s", "inputs": "i", "seconds": 0, "files": {"a.json": entry}}
    path.write_text(json.dumps(whole))
    assert read_typed(path, Manifest, remedy="")["files"]["a.json"] == entry
