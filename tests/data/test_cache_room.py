"""The cache keeps to its limit: the least recently used go, what is in use stays."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from d2cp.data import cache as cache_module
from d2cp.data import load_table, open_images
from d2cp.data.cache_room import LIMIT, entries, limit_bytes, make_room, remove
from d2cp.errors import ConfigError
from image_files import Tree, csv_set

SIZES = (8, 12, 16)


@pytest.fixture
def three(tree: Tree, cache: Path) -> Path:
    """One data set at three sizes, nobody reading it; used in the order of the sizes."""
    root = tree(csv_set())
    for size in SIZES:
        open_images(load_table(root), size, cache)
    _age(cache, {8: 300, 12: 200, 16: 100})
    return root


def _age(cache: Path, seconds: dict[int, int]) -> None:
    for entry in entries(cache):
        then = 1_700_000_000 - seconds[entry.side]
        os.utime(entry.path / "manifest.json", (then, then))


def sides(cache: Path) -> list[int]:
    return [entry.side for entry in entries(cache)]


def test_least_recently_used_go_first(three: Path, cache: Path) -> None:
    assert sides(cache) == [8, 12, 16]
    open_images(load_table(three), 8, cache)  # used again, and closed
    assert sides(cache) == [12, 16, 8]
    total = sum(entry.size for entry in entries(cache))
    assert make_room(cache, 0, total) == []
    assert [entry.side for entry in make_room(cache, 1, total)] == [12]
    assert sides(cache) == [16, 8]
    assert make_room(cache, 10**9, 0) == [], "0 is no limit"


def test_what_is_read_stays(three: Path, cache: Path) -> None:
    store = open_images(load_table(three), 8, cache)
    part = store.subset(store.good_rows()[:3])
    expected = store[store.good_rows()]
    del store
    assert [entry.side for entry in make_room(cache, 10**9, 1)] == [12, 16]
    assert (part.subset(part.good_rows())[part.good_rows()] == expected[:3]).all()
    del part
    assert remove(entries(cache)[0]) and sides(cache) == []


def test_another_process_that_reads_is_seen(three: Path, cache: Path) -> None:
    code = "import sys; from d2cp.data import load_table, open_images\n"
    code += (
        "store = open_images(load_table(sys.argv[1]), 8, sys.argv[2])\nprint('open', flush=True)"
    )
    code += "\nsys.stdin.read()"
    words = [sys.executable, "-c", code, str(three), str(cache)]
    reader = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert reader.stdout is not None and reader.stdout.readline() == "open\n"
    make_room(cache, 10**9, 1)
    assert sides(cache) == [8]
    reader.communicate("")
    make_room(cache, 10**9, 1)
    assert sides(cache) == []


def test_building_makes_room(three: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {entry.side: entry.size for entry in entries(cache)}
    limit = (sizes[12] + sizes[16] + 24 * 3 * 14 * 14) / 1e9
    monkeypatch.setenv(LIMIT, str(limit))
    open_images(load_table(three), 14, cache)
    assert sides(cache) == [12, 16, 14]


def test_an_entry_that_went_is_built_again(three: Path, cache: Path) -> None:
    for entry in entries(cache):
        assert remove(entry)
    store = open_images(load_table(three), 8, cache)
    assert len(store) == 24 and sides(cache) == [8]
    assert not list((cache / "images").glob("*/.gone-*"))


def test_the_limit_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LIMIT, raising=False)
    assert limit_bytes() == 50 * 10**9
    monkeypatch.setenv(LIMIT, "0.5")
    assert limit_bytes() == 5 * 10**8
    for wrong in ("much", "-1", "nan"):
        monkeypatch.setenv(LIMIT, wrong)
        with pytest.raises(ConfigError, match=LIMIT):
            limit_bytes()


def test_command_shows_and_clears(three: Path, cache: Path) -> None:
    from d2cp.cli.app import app

    def said(*words: str) -> str:
        outcome = CliRunner().invoke(app, ["cache", *words, "--cache", str(cache)])
        assert outcome.exit_code == 0, outcome.output
        return outcome.output

    shown = json.loads(said("--json"))
    assert [entry["side"] for entry in shown["entries"]] == [8, 12, 16]
    assert "50.00 GB" in said() and "24" in said("show")
    store = open_images(load_table(three), 12, cache)
    assert json.loads(said("clear", "--json"))["kept"] == 1
    assert sides(cache) == [12] and len(store) == 24
    del store
    assert "removed 1 of 1" in said("clear") and sides(cache) == []


def test_the_cache_is_read_where_nothing_may_be_written(
    three: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "utime", refuse)
    monkeypatch.setattr(cache_module, "_build", refuse)
    assert len(open_images(load_table(three), 16, cache)) == 24
