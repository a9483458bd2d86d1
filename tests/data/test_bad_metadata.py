"""Metadata as it should not be: each fault gets a plain error, a warning, or is repaired aloud."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from d2cp.data import load_images, load_table, open_images
from d2cp.data.label_values import encode as encode_labels
from d2cp.errors import DataError
from image_files import Tree, csv_set, encode, picture

ROWS = [f"{i}.png,{i % 3},{i % 2}" for i in range(12)]


def write(folder: Path, rows: list[str], header: str = "filename,split,y") -> Path:
    (folder / "metadata.csv").write_bytes("\n".join([header, *rows, ""]).encode())
    return folder


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("../secret.png,0,1", r"\.\./secret"),
        ("a/../../secret.png,0,1", "path inside"),
        ("..\\secret.png,0,1", "path inside"),
        ("/etc/passwd,0,1", "path inside"),
        ("C:\\secret.png,0,1", "path inside"),
        (",0,1", "path inside"),
        ("x\0.png,0,1", "NUL character on line 14"),
        ("x.png,3,1", "split '3' in row 13"),
        ("x.png,,1", "split"),
        ("x.png,0,", "no value in row 13"),
        ("x.png,0,nan", "no value in row 13"),
        ("x.png,0,1.5", "not a whole number"),
        ("x.png,0", "line 14: 2 fields"),
        ("x.png,0,1,9", "line 14: 4 fields"),
        ('"x.png,0,1', "cannot be parsed"),
        ("1.png,1,0", r"1\.png is listed twice .*line 3.*line 14"),
        ("1.png,2,1", "listed twice"),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, row: str, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        load_table(write(tmp_path, [*ROWS, row]))


def test_repeated_rows_count_once_and_are_told(tmp_path: Path) -> None:
    table = load_table(write(tmp_path, [*ROWS, *ROWS[:3], "./4.png,1,0"]))
    assert len(table) == 12 and "4 repeated rows, each kept once" in table.warnings


def test_whole_floats_and_gaps_between_labels(tmp_path: Path) -> None:
    rows = [f"{i}.png,{i % 3}.0,{(3.0, 7, '10.')[i % 3 if i % 2 else 0]}" for i in range(30)]
    table = load_table(write(tmp_path, rows))
    assert table.class_names == ("3", "7", "10") and set(table.y) == {0, 1, 2}
    assert any("renumbered" in note for note in table.notes)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_byte_order_marks(tmp_path: Path, encoding: str) -> None:
    text = "\n".join(["filename,split,y", *ROWS])
    (tmp_path / "metadata.csv").write_bytes(text.encode(encoding))
    assert len(load_table(tmp_path)) == 12


def test_text_in_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "metadata.csv").write_bytes("filename,split,y\nä.png,0,1\n".encode("latin-1"))
    with pytest.raises(DataError, match="save it as UTF-8"):
        load_table(tmp_path)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([], "no rows"),
        (["a.png,0,1", "b.png,1,1"], "one class only"),
        (["a.png,1,1", "b.png,2,0"], "no training rows"),
    ],
)
def test_sets_that_cannot_be_learned_from(tmp_path: Path, rows: list[str], reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        load_table(write(tmp_path, rows))


def test_missing_splits_and_a_class_of_one(tmp_path: Path) -> None:
    rows = [f"{i}.png,0,{i % 2}" for i in range(40)] + ["x.png,0,2"]
    table = load_table(write(tmp_path, rows))
    assert table.split_names == ("train", "val")
    assert table.counts()["val"] == {"0": 4, "1": 4, "2": 0}
    text = " ".join(table.warnings)
    assert "no validation split" in text and "no test split" in text
    assert "class '2' has 1 training image" in text


def test_links_are_followed_inside_the_root_only(tree: Tree, tmp_path: Path, cache: Path) -> None:
    root = tree(csv_set(24))
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.png").write_bytes(encode(picture(99)))
    for name, target in {
        "img/00.png": outside / "secret.png",
        "img/01.png": root / "img" / "05.png",
        "img/02.png": tmp_path / "nothing.png",
    }.items():
        (root / name).unlink()
        (root / name).symlink_to(target)
    os.mkfifo(root / "pipe.png")
    (root / "img" / "03.png").unlink()
    (root / "img" / "03.png").symlink_to(root / "pipe.png")
    store = open_images(load_table(root), 16, cache)
    assert store.bad == {
        0: "a link or path that leaves the data folder (--images / would allow it)",
        2: "missing file",
        3: "not a regular file",
    }
    assert np.array_equal(store[np.array([1])], store[np.array([5])])


def test_a_linked_folder_that_leaves_the_root_is_not_read(
    tree: Tree, tmp_path: Path, cache: Path
) -> None:
    root = tree(csv_set(6))
    os.rename(root / "img", tmp_path / "elsewhere")
    (root / "img").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError, match="leaves the data folder") as refused:
        load_table(root)
    advised = refused.value.remedy.split("--images ")[1]
    assert Path(advised) == tmp_path
    assert open_images(load_table(root, images=advised), 16, cache).bad == {}


def test_a_linked_class_folder_is_refused_with_a_remedy_that_works(
    tree: Tree, tmp_path: Path, cache: Path
) -> None:
    root = tree({f"{c}/{i}.png": encode(picture(i)) for c in "ab" for i in range(12)})
    os.rename(root / "a", tmp_path / "far")
    (root / "a").symlink_to(tmp_path / "far")
    with pytest.raises(DataError, match="'a' is a link that leaves") as refused:
        load_table(root)
    advised = refused.value.remedy.split("--images ")[1]
    for images in (advised, "/"):
        table = load_table(root, images=images)
        assert open_images(table, 16, cache).bad == {} and str(table.ids[0]) == "a/0.png"
    (root / "c").symlink_to(root / "b")  # inside the folder: no reason to refuse
    (root / "a").unlink()
    assert load_table(root).class_names == ("b", "c")


def test_absolute_paths_inside_the_root_or_below_named_images(
    tree: Tree, tmp_path: Path, cache: Path
) -> None:
    root = tree(csv_set(24))
    lines = (root / "metadata.csv").read_text().splitlines()
    for line in range(1, len(lines)):
        lines[line] = f"{root}/{lines[line]}"
    (root / "metadata.csv").write_text("\n".join(lines))
    table = load_table(root)
    assert str(table.ids[0]) == "img/00.png" and open_images(table, 16, cache).bad == {}
    os.rename(root / "metadata.csv", tmp_path / "labels.csv")
    (tmp_path / "elsewhere").mkdir()
    os.rename(tmp_path / "labels.csv", tmp_path / "elsewhere" / "labels.csv")
    labels = tmp_path / "elsewhere" / "labels.csv"
    with pytest.raises(DataError, match="line 2") as refused:
        load_table(labels)
    assert "--images /" in refused.value.remedy
    for images in ("/", root):
        assert open_images(load_table(labels, images=images), 16, cache).bad == {}


def test_a_folder_of_images_still_wins_over_the_metadata_folder(tree: Tree, cache: Path) -> None:
    root = tree(csv_set(24))
    (root / "meta").mkdir()
    os.rename(root / "metadata.csv", root / "meta" / "metadata.csv")
    assert open_images(load_table(root / "meta", images=root), 16, cache).bad == {}


def test_a_linked_metadata_file_keeps_the_folder_it_is_seen_in(
    tree: Tree, tmp_path: Path, cache: Path
) -> None:
    root = tree(csv_set(6))
    os.rename(root / "metadata.csv", tmp_path / "kept.csv")
    (root / "metadata.csv").symlink_to(tmp_path / "kept.csv")
    assert open_images(load_table(root), 16, cache).bad == {}


def test_missing_files_are_quarantined_and_told(tree: Tree, cache: Path) -> None:
    root = tree(csv_set(24))
    for i in (0, 3, 4):
        (root / f"img/{i:02d}.png").unlink()
    good, store = load_images(load_table(root), 16, cache)
    assert len(good) == len(store) == 21 and not store.bad
    assert "3 unreadable images left out (0: 1, 1: 2)" in good.warnings[-1]


names = st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), min_size=1, max_size=30)


@given(name=names)
@settings(max_examples=80, deadline=None)
def test_no_file_name_leads_outside(name: str) -> None:
    """Whatever the name: a plain error, or a row whose file would lie inside the folder."""
    with tempfile.TemporaryDirectory() as folder:
        quoted = '"' + name.replace('"', '""') + '"'
        try:
            table = load_table(write(Path(folder), [*ROWS, f"{quoted},0,1"]))
        except DataError:
            return
        for row in table.ids.tolist():
            inside = os.path.realpath(os.path.join(folder, row))
            assert inside.startswith(os.path.realpath(folder) + os.sep)


@given(data=st.binary(max_size=200))
@settings(max_examples=60, deadline=None)
def test_any_bytes_as_metadata_give_a_table_or_a_plain_error(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "metadata.csv").write_bytes(b"filename,split,y\n" + data)
        try:
            assert load_table(folder).n_classes >= 2
        except DataError as error:
            assert str(error)


@given(labels=st.lists(st.sampled_from(["3", "3.0", "-1", "+7", "cat", "10", "a b"]), min_size=1))
@settings(max_examples=60, deadline=None)
def test_labels_are_renumbered_without_mixing(labels: list[str]) -> None:
    codes, class_names = encode_labels(labels, "labels")
    assert sorted(set(codes.tolist())) == list(range(len(class_names)))
    for label, code in zip(labels, codes, strict=True):
        kept = class_names[code]
        assert kept == label or float(kept) == float(label)
