"""What predict is given, and what it leaves out."""

import io
from pathlib import Path

import pytest

from d2cp.errors import DataError
from d2cp.export.image_list import image_list


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.png", "a.JPG", "notes.txt", "deep/c.webp", "deep/.DS_Store"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    return tmp_path


def test_a_folder_stands_for_its_images_and_says_what_it_skips(folder: Path) -> None:
    found = image_list([folder], [])
    names = [str(path.relative_to(folder)) for path in found.files]
    assert names == ["a.JPG", "b.png", "deep/c.webp"]
    assert {path.name for path in found.skipped} == {"notes.txt", ".DS_Store"}
    assert "skipped 2 files that are no images" in found.note()
    assert str(found.skipped[0]) in found.note()


def test_files_that_are_named_are_not_judged_by_their_name(folder: Path) -> None:
    found = image_list([folder / "notes.txt"], [])
    assert found.files == [folder / "notes.txt"] and found.note() == ""


def test_names_come_from_standard_input_in_their_order(folder: Path) -> None:
    lines = io.StringIO("z z.png\n\n a.png\r\nlast.png")
    found = image_list([Path("first.png"), Path("-")], lines)
    assert [str(p) for p in found.files] == ["first.png", "z z.png", " a.png", "last.png"]


def test_nothing_at_all_is_an_error(tmp_path: Path) -> None:
    for paths, lines in (([tmp_path], []), ([Path("-")], ["\n"])):
        with pytest.raises(DataError, match="no image files"):
            image_list(paths, lines)
