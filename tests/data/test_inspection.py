from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from d2cp.cli.check import check
from d2cp.data import load_table
from d2cp.data.inspection import check_table
from d2cp.errors import DataError
from image_files import Tree, csv_set, encode, picture

app = typer.Typer()
app.command()(check)
run = CliRunner()


def big_enough(extra: dict[str, bytes] | None = None) -> dict[str, bytes]:
    return csv_set(60, extra)


def test_a_clean_set(tree: Tree) -> None:
    report = check_table(load_table(tree(big_enough())))
    assert report.clean and report.images == "present" and report.decoded
    assert sum(report.counts["train"].values()) == 20
    assert report.counts_match is None


def test_unreadable_files_by_class(tree: Tree) -> None:
    bad = {"img/00.png": b"", "img/01.png": b"<html>", "img/03.png": encode(picture(1))[:-30]}
    root = tree(big_enough(bad))
    report = check_table(load_table(root))
    assert report.unreadable_by_class == {"0": 2, "1": 1}
    assert {r["id"]: r["reason"] for r in report.unreadable}["img/01.png"].startswith("a web page")
    assert "3 unreadable images (0: 2, 1: 1)" in report.problems
    fast = check_table(load_table(root), decode_images=False)
    assert fast.clean and not fast.decoded
    (root / "img/05.png").unlink()
    fast = check_table(load_table(root), decode_images=False)
    assert fast.images == "partly" and [r["id"] for r in fast.unreadable] == ["img/05.png"]


def test_the_same_image_in_two_splits_and_under_two_labels(tree: Tree) -> None:
    same = encode(picture(500))
    report = check_table(load_table(tree(big_enough({"img/00.png": same, "img/01.png": same}))))
    (leak,) = report.duplicates
    assert leak.ids == ("img/00.png", "img/01.png") and leak.splits == ("train", "val")
    assert report.problems == ("1 images stand in more than one split",)
    # Rows 0 and 9 are both training rows, of classes 0 and 1; 0 and 6 share split and class.
    report = check_table(load_table(tree(big_enough({"img/00.png": same, "img/09.png": same}))))
    assert any("more than one label" in problem for problem in report.problems)
    plain = {"img/00.png": same, "img/06.png": same}
    report = check_table(load_table(tree(big_enough(plain))))
    assert report.clean and any("repeat" in note for note in report.notes)


def pictures(*places: str, n: int = 24, first: int = 0) -> dict[str, bytes]:
    """n different pictures in each folder."""
    return {
        f"{place}/{i}.png": encode(picture(first + 1000 * k + i))
        for k, place in enumerate(places)
        for i in range(n)
    }


SPLIT = [f"{split}/{label}" for split in ("train", "val", "test") for label in ("cat", "dog")]


def test_a_class_without_test_images_is_not_clean(tree: Tree) -> None:
    files = pictures(*SPLIT)
    assert check_table(load_table(tree(files))).clean
    missing = {name: data for name, data in files.items() if not name.startswith("test/dog")}
    shutil.rmtree(tree({}) / "test" / "dog")
    report = check_table(load_table(tree(missing)))
    assert report.problems == ("class 'dog' has no test images",)


def test_left_out_files_are_not_clean(tree: Tree) -> None:
    extra = {
        "train/cat/a.heic": b"x",
        "train/cat/b.HEIC": b"x",
        "val/loose.png": encode(picture(7)),
    }
    root = tree({**pictures(*SPLIT), **extra, "train/dog/Thumbs.db": b"x"})
    report = check_table(load_table(root))
    assert report.problems == (
        f"1 images lie in {root / 'val'}, in no class folder, and are not read",
        "files that are not images by their suffix were left out: 2 .heic",
    )


@pytest.mark.parametrize("inner", [("cat", "dog"), ("cat",)])
def test_years_above_the_classes_are_told(tree: Tree, inner: tuple[str, ...]) -> None:
    places = [f"{year}/{label}" for year in (2023, 2024) for label in inner]
    report = check_table(load_table(tree(pictures(*places))))
    assert report.class_names == ("2023", "2024")
    (problem,) = report.problems
    assert "'2023', '2024'" in problem and "bring them to the top" in problem


def test_one_inner_folder_of_each_class_leaves_no_doubt(tree: Tree) -> None:
    assert check_table(load_table(tree(pictures("cat/raw", "dog/raw", n=30)))).clean


def test_a_run_among_the_images_is_no_class(tree: Tree) -> None:
    files = pictures("cat", "dog", n=30)
    before = load_table(tree(files)).fingerprint()
    run = {"result/run.json": b"{}", "result/mine/pictures/a.png": encode(picture(1))}
    run |= {"cat/other/run.json": b"{}", "cat/other/a.png": encode(picture(2))}
    run |= {"model/config.json": b'{"model_type": "d2cp_classifier"}'}
    table = load_table(tree({**files, **run}))
    assert table.class_names == ("cat", "dog") and table.fingerprint() == before
    assert check_table(table).clean


def test_embedded_set_matches_the_published_counts() -> None:
    report = check_table(load_table("cmnist"))
    assert report.counts_match is True and report.clean


def test_absent_images_are_said_not_listed(tree: Tree) -> None:
    report = check_table(load_table(tree({"metadata.csv": csv_set(60)["metadata.csv"]})))
    assert report.images == "absent" and not report.unreadable and not report.clean
    assert "images absent" in report.problems[0]


def test_exit_codes_and_json(tree: Tree) -> None:
    root = tree(big_enough())
    clean = run.invoke(app, [str(root)])
    assert clean.exit_code == 0 and "recognised as csv" in clean.output and "clean" in clean.output
    (root / "img/00.png").write_bytes(b"")
    faulty = run.invoke(app, [str(root)])
    assert faulty.exit_code == 1 and "unreadable: img/00.png" in faulty.output
    as_json = run.invoke(app, [str(root), "--json"])
    found = json.loads(as_json.stdout)
    assert as_json.exit_code == 1 and found["unreadable_by_class"] == {"0": 1}
    assert found["clean"] is False and found["counts"]["train"]["0,0"] == 10
    nothing = run.invoke(app, [str(root / "img" / "01.png")])
    assert isinstance(nothing.exception, DataError) and nothing.exception.exit_code == 3
    assert run.invoke(app, [str(root), "--column", "y"]).exit_code == 2
    other = run.invoke(app, [str(root), "--column", "y=a", "--fast", "--json"])
    assert json.loads(other.stdout)["class_names"] == ["0", "1"]


def test_many_groups_are_shown_as_a_matrix(tree: Tree) -> None:
    lines = ["filename,split,y,a", *(f"{i}.png,{i % 3},{i % 7},{i % 5}" for i in range(420))]
    result = run.invoke(app, [str(tree({"metadata.csv": "\n".join(lines).encode()}))])
    assert result.exit_code == 1 and "test" in result.output
    (row,) = [line.split() for line in result.output.splitlines() if line.startswith("6 ")][:1]
    assert row == ["6", "4", "4", "4", "4", "4"]


def test_names_are_shown_as_text(tree: Tree) -> None:
    evil = "[red]x\x1b[31m\u202e"
    files = {
        f"{name}/{i}.png": encode(picture(i + 50 * n))
        for n, name in enumerate(["a", evil])
        for i in range(20)
    }
    output = run.invoke(app, [str(tree(files))]).output
    assert "[red]x[U+001B][31m[U+202E]" in output and "\x1b[31m" not in output


@pytest.mark.parametrize("module", ["d2cp.data", "d2cp.data.open_table", "d2cp.cli.check"])
def test_no_torch_is_imported(module: str) -> None:
    code = f"import sys, {module}; sys.exit('torch' in sys.modules or 'datasets' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
