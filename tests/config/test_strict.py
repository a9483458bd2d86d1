from dataclasses import dataclass, field
from typing import Literal

import pytest

from d2cp.config import load_config
from d2cp.config.strict import build, merge, parse_assignment
from d2cp.config.whole import read_settings
from d2cp.errors import ConfigError
from soak import option_table


@dataclass(frozen=True, kw_only=True)
class Inner:
    rate: float = 0.1
    kind: Literal["a", "b"] = "a"
    sizes: tuple[int, ...] = (1, 2)
    limit: int | None = None


@dataclass(frozen=True, kw_only=True)
class Outer:
    seed: int = 0
    inner: Inner = field(default_factory=Inner)


def test_nested_values_are_checked_and_converted():
    made = build(Outer, {"seed": 3, "inner": {"rate": 1, "sizes": [4], "limit": 5}})
    assert made == Outer(seed=3, inner=Inner(rate=1.0, sizes=(4,), limit=5))


def test_unknown_key_names_the_nearest():
    with pytest.raises(ConfigError, match=r"inner\.rat'") as caught:
        build(Outer, {"inner": {"rat": 1.0}})
    assert "did you mean 'rate'" in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [
        {"seed": 1.5},
        {"seed": True},
        {"seed": "1"},
        {"inner": {"kind": "c"}},
        {"inner": {"sizes": 3}},
        {"inner": {"limit": "many"}},
        {"inner": 4},
    ],
)
def test_wrong_types_are_refused(values):
    with pytest.raises(ConfigError):
        build(Outer, values)


def test_assignments_are_toml_or_text():
    assert parse_assignment("inner.rate=0.5") == {"inner": {"rate": 0.5}}
    assert parse_assignment("inner.kind=b") == {"inner": {"kind": "b"}}
    assert parse_assignment("inner.sizes=[1, 2]") == {"inner": {"sizes": [1, 2]}}
    with pytest.raises(ConfigError, match=r"stage\.key=value"):
        parse_assignment("seed")


def test_merge_is_deep_and_leaves_its_arguments_alone():
    base = {"a": {"x": 1, "y": 2}, "b": 3}
    assert merge(base, {"a": {"y": 5}}) == {"a": {"x": 1, "y": 5}, "b": 3}
    assert base["a"]["y"] == 2


def test_a_settings_file_without_an_end_is_not_opened(tmp_path):
    (tmp_path / "endless.toml").symlink_to("/dev/zero")
    for path, said in ((tmp_path / "endless.toml", "not a file"), (tmp_path, "not a file")):
        with pytest.raises(ConfigError, match=said):
            read_settings(path)


def test_no_setting_takes_a_negative_number():
    """There is none that it means anything for, but the seed: else an optimiser would find out."""
    table = option_table()
    numbers = [n for n, (_, v) in table.items() if type(v) in (int, float) and n != "seed"]
    assert len(numbers) > 60
    for name in numbers:
        with pytest.raises(ConfigError, match=name.rpartition(".")[2]):
            load_config("demo", assignments=[f"{name}=-1"])
