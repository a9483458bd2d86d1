"""What a row costs in memory, by tracemalloc: the table itself and little more."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from d2cp.data import load_table, open_images
from d2cp.data.inspection import check_table
from d2cp.data.source import FileSource, Stamp
from d2cp.data.store import ImageStore
from image_files import Tree, encode, picture

FEW, MANY = 2_000, 10_000
BMP = encode(picture(0, 8, 8), "BMP")


@pytest.fixture
def files_of_no_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every name is a file, each with bytes of its own."""

    def stamp(self: FileSource, row: int) -> Stamp:
        return Stamp(str(self.names[row]), len(BMP), 10**18 + row, 10**18)

    def read(self: FileSource, row: int) -> bytes:
        return BMP[:-4] + row.to_bytes(4, "little")

    monkeypatch.setattr(FileSource, "stamp", stamp)
    monkeypatch.setattr(FileSource, "read", read)


def listed(tree: Tree, rows: int) -> Path:
    lines = ["filename,y,split"]
    lines += [f"{i // 1000:03d}/{i:06d}.bmp,{i % 2},{('train', 'val')[i % 2]}" for i in range(rows)]
    return tree({"metadata.csv": "\n".join(lines).encode()})


def a_row_more(tree: Tree, work: Callable[[Path], object]) -> tuple[float, float]:
    """Bytes that a row adds to what is held afterwards, and to the most that is held."""
    held, most = [], []
    for rows in (FEW, FEW, MANY):  # once before, for what the first call imports and keeps
        root = listed(tree, rows)
        tracemalloc.start()
        result = work(root)
        gc.collect()
        now, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        held.append(now)
        most.append(peak)
        del result
    return (held[2] - held[1]) / (MANY - FEW), (most[2] - most[1]) / (MANY - FEW)


def test_an_open_table(tree: Tree) -> None:
    held, most = a_row_more(tree, load_table)
    assert held < 100 and most < 200


def test_a_part_of_a_table_holds_its_names_once(tree: Tree) -> None:
    table = load_table(listed(tree, 100))
    part = table.subset(table.rows("val"))
    assert isinstance(part.source, FileSource) and part.ids is part.source.names


@pytest.mark.usefixtures("files_of_no_disk")
def test_images_that_nobody_has_seen_and_a_second_look(tree: Tree, cache: Path) -> None:
    def opened(root: Path) -> ImageStore:
        table = load_table(root)
        return open_images(table, 2, cache / str(len(table)), quiet=True)

    for _ in range(2):
        held, most = a_row_more(tree, opened)
        assert held < 60 and most < 450


@pytest.mark.usefixtures("files_of_no_disk")
def test_a_check_without_decoding(tree: Tree) -> None:
    _, most = a_row_more(tree, lambda root: check_table(load_table(root), decode_images=False))
    assert most < 250
