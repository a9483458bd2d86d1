"""Files that nobody has seen are read once: digested and decoded together."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from d2cp.data import cache as cache_module
from d2cp.data import load_table, open_images
from d2cp.data.source import FileSource, Stamp
from d2cp.data.store import MemmapStore
from image_files import Tree, csv_set, encode, picture


def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """How often the file of each row is read from now on."""
    found: Counter[int] = Counter()
    original = FileSource.read

    def counted(self: FileSource, row: int) -> bytes:
        found[row] += 1
        return original(self, row)

    monkeypatch.setattr(FileSource, "read", counted)
    return found


def files(folder: Path) -> dict[str, bytes]:
    """Of an entry, but for its manifest, which holds a time."""
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.name != "manifest.json"}


def opened(root: Path, cache: Path) -> MemmapStore:
    store = open_images(load_table(root), 16, cache, quiet=True)
    assert isinstance(store, MemmapStore)
    return store


def with_faults() -> dict[str, bytes]:
    """Three equal files, a damaged one, an empty one, and one that is missing."""
    same = encode(picture(4))
    changed = {"img/05.png": same, "img/09.png": same, "img/02.png": b"<html>", "img/03.png": b""}
    made = csv_set(24, changed)
    del made["img/11.png"]
    return made


def test_each_file_is_read_once(tree: Tree, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = reads(monkeypatch)
    root = tree(csv_set())
    for _ in range(2):
        opened(root, cache)
        assert found == Counter(range(24))


def test_the_entry_is_that_of_reading_twice(
    tree: Tree, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An entry of the same settings lies in the other cache: digests first, then a second reading.
    other = tmp_path / "other"
    small = opened(tree(csv_set(8)).rename(tmp_path / "small"), other)
    root = tree(with_faults())
    once = opened(root, cache)
    found = reads(monkeypatch)
    twice = opened(root, other)
    assert twice.folder != small.folder and max(found.values()) == 2
    assert files(once.folder) == files(twice.folder)
    assert once.folder.name == twice.folder.name and once.key == twice.key
    assert once.bad == twice.bad and sorted(once.bad) == [2, 3, 11]
    rows = once.good_rows()
    assert np.array_equal(once[rows], twice[rows])


def test_equal_files_share_a_square(tree: Tree, cache: Path) -> None:
    store = opened(tree(with_faults()), cache)
    different = {*range(24)} - {5, 9, 11}  # both equal to 4; missing
    assert (store.folder / "digests.bin").stat().st_size == 16 * len(different)
    assert np.array_equal(store[np.array([5])], store[np.array([9])])


def test_an_entry_that_holds_the_images_is_used(
    tree: Tree, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder has moved, so that no file is known; its images are."""
    root = tree(csv_set())
    first = opened(root, cache)

    def never(*_: object) -> None:
        raise AssertionError("decoded again")

    monkeypatch.setattr(cache_module, "EntryWriter", never)
    moved = root.rename(root.parent / "moved")
    assert opened(moved, cache).key == first.key


def test_pixels_just_written_are_not_read_back_later_ones_are(
    tree: Tree, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    original = cache_module.checksum_of

    def noted(path: Path) -> str:
        looked.append(path.name)
        return original(path)

    monkeypatch.setattr(cache_module, "checksum_of", noted)
    root = tree(csv_set())
    opened(root, cache)
    assert "pixels.u8" not in looked and "digests.bin" in looked
    opened(root, cache)
    assert "pixels.u8" in looked


@pytest.mark.parametrize("behind", [b"", b"more", bytes(2**21)])
def test_a_file_that_grows_while_it_is_read_is_read_whole(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, behind: bytes
) -> None:
    root = tree(csv_set())
    source = load_table(root).source
    assert isinstance(source, FileSource)
    path = root / str(source.names[0])
    whole, original = path.read_bytes() + behind, FileSource.stamp

    def grown(self: FileSource, row: int) -> Stamp:
        before = original(self, row)
        path.write_bytes(whole)
        return before

    monkeypatch.setattr(FileSource, "stamp", grown)
    assert source.read(0) == whole
