from __future__ import annotations

import io
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from d2cp.data import load_images, load_table
from d2cp.data.adapters import ADAPTERS, celeba, metashift, waterbirds
from d2cp.data.source import FileSource
from d2cp.errors import DataError
from image_files import Tree, csv_set, encode, picture

PNG = encode(picture(0))


def folders(splits: tuple[str, ...], classes: dict[str, int]) -> dict[str, bytes]:
    return {
        f"{split}/{name}/{i:03d}.png".lstrip("/"): encode(
            picture(zlib.crc32(f"{split}/{name}/{i}".encode()))
        )
        for split in splits
        for name, n in classes.items()
        for i in range(n)
    }


class TestClassFolders:
    @pytest.mark.parametrize("val", ["val", "valid", "validation", "Val"])
    def test_split_folders(self, tree: Tree, val: str) -> None:
        root = tree(folders(("train", val, "test"), {"cat": 12, "dog": 11}))
        table = load_table(root)
        assert table.format == "folders" and table.class_names == ("cat", "dog")
        assert table.counts() == {s: {"0": 12, "1": 11} for s in ("train", "val", "test")}
        assert table.a is None and not table.warnings

    def test_without_splits_one_is_drawn_per_class_by_seed(self, tree: Tree) -> None:
        root = tree(folders(("",), {"a": 40, "b": 20, "c": 1}))
        table, again, other = (load_table(root, seed=seed) for seed in (3, 3, 4))
        assert table.counts() == {
            "train": {"0": 28, "1": 14, "2": 1},
            "val": {"0": 6, "1": 3, "2": 0},
            "test": {"0": 6, "1": 3, "2": 0},
        }
        assert np.array_equal(table.split, again.split)
        assert not np.array_equal(table.split, other.split)
        assert "class 'c' has 1 training image" in table.warnings
        assert "split seed 3; --seed does not move images" in table.notes[0]

    def test_a_class_called_train_is_a_class(self, tree: Tree) -> None:
        table = load_table(tree(folders(("",), {"car": 20, "train": 20, "bus": 20})))
        assert table.class_names == ("bus", "car", "train")

    def test_no_validation_folder_takes_from_train(self, tree: Tree) -> None:
        table = load_table(tree(folders(("train", "test"), {"a": 20, "b": 20})))
        assert table.counts()["val"] == {"0": 4, "1": 4}
        assert any("no validation split" in warning for warning in table.warnings)

    def test_one_class_is_an_error_that_shows_the_tree(self, tree: Tree) -> None:
        with pytest.raises(DataError, match=r"(?s)only below 'lonely'.*FOLDER/train/CLASS"):
            load_table(tree(folders(("",), {"lonely": 5})))

    def test_what_is_left_out_is_told(self, tree: Tree) -> None:
        files = folders(("",), {"a": 20, "none": 20})
        root = tree({**files, "a/notes.txt": b"x", "a/.DS_Store": b"x", "a/sub/deep.JPG": PNG})
        (root / "empty").mkdir()
        table = load_table(root)
        assert table.class_names == ("a", "none") and len(table) == 41
        assert any(".txt" in warning for warning in table.warnings)
        assert any("'empty' holds no image" in warning for warning in table.warnings)

    def test_a_stray_table_does_not_hide_the_folders(self, tree: Tree) -> None:
        files = folders(("",), {"a": 20, "b": 20})
        assert load_table(tree({**files, "names.csv": b"id,word\n0,a\n"})).format == "folders"


class TestMetadataCsv:
    def test_plain_form(self, tree: Tree) -> None:
        table = load_table(tree(csv_set(60)))
        assert table.format == "csv" and table.name == "set" and len(table) == 60
        assert table.n_values == 2 and table.class_names == ("0", "1")
        assert not table.warnings

    @pytest.mark.parametrize("delimiter", [",", ";", "\t"])
    def test_other_columns_words_and_delimiters(self, tree: Tree, delimiter: str) -> None:
        rows = [["where", "what", "part", "light"]]
        parts = ("train", "valid", "test")
        rows += [[f"{i}.png", ["ant", "bee"][i % 2], parts[i % 3], "day"] for i in range(12)]
        text = "\r\n".join(delimiter.join(row) for row in rows)
        root = tree({"mine.tsv": b"\xef\xbb\xbf" + text.encode()})
        roles = {"filename": "where", "y": "what", "split": "PART", "a": "light"}
        table = load_table(root / "mine.tsv", columns=roles)
        assert table.name == "mine" and table.class_names == ("ant", "bee")
        assert table.attribute_names == ("day",)
        assert [len(table.rows(split)) for split in ("train", "val", "test")] == [4, 4, 4]

    def test_a_missing_column_names_those_that_are_there(self, tree: Tree) -> None:
        root = tree({"metadata.csv": b"picture,kind\na.png,1\n"})
        with pytest.raises(DataError, match=r"(?s)picture, kind.*--column filename=NAME"):
            load_table(root)
        with pytest.raises(DataError, match="'sort'"):
            load_table(root, columns={"filename": "picture", "y": "sort"})
        with pytest.raises(DataError, match="colour"):
            load_table(root, columns={"colour": "kind"})

    def test_images_may_lie_elsewhere(self, tree: Tree, tmp_path: Path, cache: Path) -> None:
        files = csv_set(12)
        root = tree({"metadata.csv": files.pop("metadata.csv")})
        for name, data in files.items():
            (tmp_path / "pictures" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "pictures" / name).write_bytes(data)
        table = load_table(root, images=tmp_path / "pictures")
        assert len(load_images(table, 16, cache)[0]) == 12


def test_waterbirds_form_is_recognised_and_compared(tree: Tree) -> None:
    lines = ["img_id,img_filename,y,split,place,place_filename"]
    number = 0
    for split, cells in enumerate(waterbirds.COUNTS.values()):
        for cell, n in cells.items():
            y, a = cell.split(",")
            for _ in range(n):
                number += 1
                lines.append(f"{number},{number}.jpg,{y},{split},{a},/x/y.jpg")
    root = tree({"metadata.csv": "\n".join(lines).encode()})
    table = load_table(root)
    assert table.name == table.format == "waterbirds"
    assert table.counts() == table.expected_counts == waterbirds.COUNTS
    assert table.class_names == ("landbird", "waterbird")
    (root / "metadata.csv").write_text("\n".join([*lines[:-1], lines[-2]]))
    damaged = load_table(root, format="waterbirds")
    assert damaged.counts() != damaged.expected_counts == waterbirds.COUNTS
    assert any("img_id" in warning for warning in damaged.warnings)
    small = load_table(tree({"metadata.csv": "\n".join(lines[:1] + lines[1::50]).encode()}))
    assert small.expected_counts is None and "not the published set" in small.notes[0]


HEADER = ["5_o_Clock_Shadow", "Blond_Hair", "Male", "Young"]


def celeba_files(attributes: str, partition: str, n: int = 40) -> dict[str, bytes]:
    """A small CelebA in one of its written forms; image i: blond where i%2, male where i%4 < 2."""
    rows = [
        (f"{i:06d}.jpg", "-1", "1" if i % 2 else "-1", "1" if i % 4 < 2 else "-1", "1")
        for i in range(n)
    ]
    csv = "\n".join([",".join(["image_id", *HEADER]), *(",".join(row) for row in rows)])
    txt = "\n".join([str(n), " ".join(HEADER) + " ", *("  ".join(row) for row in rows)])
    pairs = [(row[0], str(min(i % 5, 2))) for i, row in enumerate(rows)]
    parts = {
        "csv": "image_id,partition\n" + "\n".join(",".join(pair) for pair in pairs),
        "spaced.csv": "image_id partition\n" + "\n".join(" ".join(pair) for pair in pairs),
        "txt": "\n".join(" ".join(pair) for pair in pairs),
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("list_attr_celeba.txt", txt)
    data = {"csv": csv.encode(), "txt": txt.encode(), "zip": buffer.getvalue()}[attributes]
    suffix = partition.split(".")[-1]
    return {
        f"list_attr_celeba.{attributes}": data,
        f"list_eval_partition.{suffix}": parts[partition].encode(),
    }


@pytest.mark.parametrize("attributes", ["csv", "txt", "zip"])
@pytest.mark.parametrize("partition", ["csv", "spaced.csv", "txt"])
def test_celeba_in_all_written_forms(
    tree: Tree, cache: Path, attributes: str, partition: str
) -> None:
    portrait = encode(picture(9, 178, 218), "JPEG")
    root = tree({**celeba_files(attributes, partition), "img_align_celeba/000007.jpg": portrait})
    table = load_table(root)
    assert table.format == "celeba" and table.expected_counts == celeba.COUNTS
    assert table.y.tolist() == [i % 2 for i in range(40)]
    assert table.a is not None and table.a.tolist() == [int(i % 4 < 2) for i in range(40)]
    assert [len(table.rows(split)) for split in ("train", "val", "test")] == [8, 8, 24]
    good, store = load_images(table, 32, cache)
    assert good.ids.tolist() == ["000007.jpg"] and store[np.array([0])].shape == (1, 32, 32, 3)


def test_celeba_with_another_target_expects_nothing(tree: Tree) -> None:
    table = load_table(tree(celeba_files("csv", "csv")), columns={"y": "Male", "a": "Blond_Hair"})
    assert table.class_names == ("not Male", "Male") and table.expected_counts is None
    with pytest.raises(DataError, match="Beard"):
        load_table(tree({}), columns={"y": "Beard"})


@pytest.mark.parametrize(
    ("member", "data"),
    [("../list_attr_celeba.txt", b"x"), ("/list_attr_celeba.txt", b"x"), ("other.txt", b"x")],
)
def test_celeba_archive_with_odd_members_is_refused(tree: Tree, member: str, data: bytes) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(member, data)
    root = tree({**celeba_files("zip", "txt"), "list_attr_celeba.zip": buffer.getvalue()})
    with pytest.raises(DataError, match="holds 0 files"):
        load_table(root)


def test_celeba_archive_bomb_and_damage(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    files = celeba_files("zip", "txt", 4000)
    root = tree(files)
    monkeypatch.setattr(celeba, "MAX_TEXT_BYTES", 10_000)
    with pytest.raises(DataError, match="larger than 10000 bytes"):
        load_table(root)
    tree({"list_attr_celeba.zip": files["list_attr_celeba.zip"][:-40]})
    with pytest.raises(DataError, match="cannot be read"):
        load_table(root)


def test_celeba_lists_that_disagree(tree: Tree) -> None:
    files = celeba_files("csv", "txt")
    text = files["list_eval_partition.txt"].decode().splitlines()
    root = tree({**files, "list_eval_partition.txt": "\n".join(text[1:]).encode()})
    with pytest.raises(DataError, match=r"1 images are in only one .*000000\.jpg"):
        load_table(root)


def test_metashift_tree_and_csv(tree: Tree) -> None:
    leaves = {"train/cat/cat(indoor)": 40, "train/dog/dog(outdoor)": 40}
    leaves |= {"test/cat/cat(outdoor)": 20, "test/dog/dog(indoor)": 20}
    inner = metashift.PUBLISHED_FOLDER
    root = tree({f"{inner}/{leaf}/{i}.jpg": PNG for leaf, n in leaves.items() for i in range(n)})
    table = load_table(root)
    assert table.format == "metashift" and table.class_names == ("dog", "cat")
    total = {cell: sum(c[cell] for c in table.counts().values()) for cell in ("0,0", "1,1", "0,1")}
    assert total == {"0,0": 40, "1,1": 40, "0,1": 20}
    assert [len(table.rows(split)) for split in ("train", "val", "test")] == [78, 12, 30]
    assert table.expected_counts == metashift.COUNTS != table.counts()
    lines = ["filename,y,a,split", *(f"{i}.jpg,{i % 2},{i % 3 % 2},{i % 3}" for i in range(60))]
    root = tree({metashift.METADATA: "\n".join(lines).encode()})
    assert len(load_table(root)) == 60  # the metadata file is preferred to the tree


def test_the_rule_of_the_metashift_split_gives_all_twelve_published_counts(tree: Tree) -> None:
    """Whatever the images are called: the folders' sizes decide."""
    leaves = {"train/cat/cat(indoor)": 1248, "train/dog/dog(outdoor)": 1184}
    leaves |= {"test/cat/cat(outdoor)": 294, "test/dog/dog(indoor)": 773}
    root = tree({f"{leaf}/{i}.jpg": b"" for leaf, n in leaves.items() for i in range(n)})
    table = load_table(root)
    assert table.counts() == metashift.COUNTS and table.name == "metashift"
    assert any(metashift.METADATA in note for note in table.notes)


@pytest.mark.parametrize("home", ["/data/them", "C:\\data", "metashift", ""])
@pytest.mark.parametrize("inside", [False, True])
def test_metashift_metadata_written_on_another_machine(tree: Tree, home: str, inside: bool) -> None:
    inner = metashift.PUBLISHED_FOLDER
    places = [f"{inner}/train/cat/cat(indoor)/{i}.jpg" for i in range(9)]
    lines = [f"{home}/{p}".lstrip("/" if not home else "") for p in places]
    rows = [f"{name},{i % 2},1,{i % 3}" for i, name in enumerate(lines)]
    metadata = f"{inner}/{metashift.METADATA}" if inside else metashift.METADATA
    root = tree(
        {**dict.fromkeys(places, PNG), metadata: "\n".join(["filename,y,a,split", *rows]).encode()}
    )
    table = load_table(root / metadata)
    assert isinstance(table.source, FileSource)
    for row in range(len(table)):
        assert table.source.read(row) == PNG


def test_hub_folder_and_parquet(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setenv("D2CP_CACHE", str(cache))
    features = datasets.Features(
        image=datasets.Image(),
        label=datasets.ClassLabel(names=["ant", "bee"]),
        place=datasets.Value("string"),
    )

    def part(start: int, n: int) -> Any:
        rows = range(start, start + n)
        return datasets.Dataset.from_dict(
            {
                "image": [{"bytes": encode(picture(i)), "path": None} for i in rows],
                "label": [i % 2 for i in rows],
                "place": ["sea" if i % 3 else "land" for i in rows],
            },
            features=features,
        )

    parts = {"train": part(0, 24), "validation": part(24, 6), "test": part(30, 8)}
    datasets.DatasetDict(parts).save_to_disk(str(tmp_path / "saved"))
    (tmp_path / "tables" / "data").mkdir(parents=True)
    for name, rows in parts.items():
        rows.to_parquet(str(tmp_path / "tables" / "data" / f"{name}-00000-of-00001.parquet"))
    pixels = []
    for folder in ("saved", "tables"):
        table = load_table(tmp_path / folder)
        assert table.format == "hub" and table.class_names == ("ant", "bee")
        assert table.attribute_names == ("land", "sea")
        sizes = {split: len(table.rows(split)) for split in ("train", "val", "test")}
        assert sizes == {"train": 24, "val": 6, "test": 8}
        _, store = load_images(table, 16, cache)
        pixels.append(store[table.rows("test")])
    assert np.array_equal(*pixels)
    single = load_table(tmp_path / "tables" / "data" / "train-00000-of-00001.parquet")
    assert len(single) == 24 and single.split_names == ("train", "val", "test")


def test_without_the_extra_the_error_says_how_to_install(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(DataError, match=r"d2cp\[hub\]"):
        load_table(tree({"dataset_dict.json": b"{}"}))


def test_unknown_layout_shows_the_expected_trees_and_what_is_there(tree: Tree) -> None:
    root = tree({"readme.md": b"hello", "stuff/file.bin": b"1"})
    with pytest.raises(DataError) as caught:
        load_table(root)
    message = str(caught.value)
    assert "readme.md, stuff/" in message
    assert all(adapter.layout in message for adapter in ADAPTERS.values())
    with pytest.raises(DataError, match=r"(?s)layout 'celeba'.*list_attr_celeba"):
        load_table(root, format="celeba")
    with pytest.raises(DataError, match="does not exist"):
        load_table(root / "nowhere")
    with pytest.raises(DataError, match="no format is called"):
        load_table(root, format="zip")


def test_unlabelled_rows_of_a_hub_split_are_no_class(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    kind = datasets.ClassLabel(names=["ant", "bee"])
    features = datasets.Features(image=datasets.Image(), label=kind)

    def part(labels: list[int | None]) -> object:
        cells = [{"bytes": encode(picture(i)), "path": None} for i in range(len(labels))]
        return datasets.Dataset.from_dict({"image": cells, "label": labels}, features=features)

    parts = {"train": part([0, 1] * 12), "validation": part([0, 1, None]), "test": part([-1] * 6)}
    datasets.DatasetDict(parts).save_to_disk(str(tmp_path / "saved"))
    table = load_table(tmp_path / "saved")
    assert table.class_names == ("ant", "bee") and table.split_names == ("train", "val")
    assert "6 rows of 'test' have no label and are left out" in table.warnings
    assert "1 rows of 'validation' have no label and are left out" in table.warnings
    assert [str(i) for i in table.ids[-2:]] == ["validation/0", "validation/1"]
    datasets.DatasetDict({"test": part([-1] * 3)}).save_to_disk(str(tmp_path / "none"))
    with pytest.raises(DataError, match="no row has a label"):
        load_table(tmp_path / "none")


def test_a_published_set_that_is_not_here_can_be_fetched(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError) as caught:
        load_table("waterbirds")
    assert "d2cp fetch waterbirds DIR" in caught.value.remedy
    with pytest.raises(DataError) as caught:
        load_table("nowhere")
    assert not caught.value.remedy
