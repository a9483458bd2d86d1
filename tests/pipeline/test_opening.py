"""What `check` knows of a data set, `run`, `show` and the report say too, one line each."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from PIL import Image
from rich.console import Console
from typer.testing import CliRunner

from d2cp.cli.app import app
from d2cp.config import load_config
from d2cp.core.run_directory import RunDirectory
from d2cp.data.place import Place
from d2cp.pipeline.opening import open_run
from d2cp.report.build import write_report
from d2cp.report.steps import run_command
from image_files import encode, picture

ADVISED = ("--column", "--images", "--format")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Two classes with a test split, none for validation, and something of each fault."""
    root = tmp_path / "photos"
    for split, first in (("train", 0), ("test", 500)):
        for i in range(24):
            path = root / split / ("cat", "dog")[i % 2] / f"{i}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encode(picture(first + i, 64, 48)))
    small = picture(0, 64, 48).resize((40, 30), Image.Resampling.BICUBIC)
    (root / "test" / "cat" / "copy.jpg").write_bytes(encode(small, "JPEG", quality=85))
    (root / "train" / "dog" / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n half of a file")
    (root / "train" / "dog" / "IMG_1.HEIC").write_bytes(b"not read")
    (root / "train" / "bird").mkdir()
    (root / "train" / "bird" / "0.png").write_bytes(encode(picture(900)))
    return root


def open_quietly(place: Place, out: Path) -> str:
    console = Console(file=io.StringIO(), width=200)
    config = load_config("demo")
    with open_run(place.table(), out, config, place=place, console=console):
        pass
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


SAID = (
    "no validation split: ",
    "1 unreadable images left out (dog: 1)",
    "left out: 1 .heic",
    "class 'bird' has 1 training image",
    "class 'bird' has no test images",
    "1 image copies one of an earlier split, byte for byte or resized: test/cat/copy.jpg is "
    "train/cat/0.png",
)


def test_findings_are_said_by_run_show_and_report(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    said = open_quietly(Place.of(photos), out)
    again = open_quietly(Place.of(photos), out)
    shown = CliRunner().invoke(app, ["show", str(out)]).output
    page = write_report(RunDirectory.open(out)).read_text(encoding="utf-8")
    for sentence in SAID:
        for text in (said, again, shown, page.replace("&#39;", "'")):
            assert sentence in text


def test_a_run_inside_the_data_folder_goes_on_unchanged(photos: Path) -> None:
    out = photos / "result"
    open_quietly(Place.of(photos), out)
    again = open_quietly(Place.of(photos), out)  # would be refused if the run were a class
    assert "data: unchanged, kept" in again and "result" not in again


def test_every_command_that_reads_data_has_the_options_that_errors_advise() -> None:
    from typer.main import get_command

    reading = set()
    for name, command in get_command(app).commands.items():
        if any(parameter.name == "data" for parameter in command.params):
            reading.add(name)
            known = {option for parameter in command.params for option in parameter.opts}
            assert set(ADVISED) <= known, name
    assert {"check", "scan", "discover", "run", "compare", "evaluate"} <= reading


def test_how_the_data_is_read_is_recorded_and_repeated(tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    lines = ["photo,species,part"]
    (tmp_path / "img").mkdir()
    for i in range(60):
        (tmp_path / "img" / f"{i}.png").write_bytes(encode(picture(i)))
        lines.append(f"{i}.png,{'ab'[i % 2]},{('train', 'val', 'test')[i % 3]}")
    labels.write_text("\n".join(lines))
    columns = {"filename": "photo", "y": "species", "split": "part"}
    place = Place.of(labels, "csv", columns, tmp_path / "img")
    out = tmp_path / "run"
    open_quietly(place, out)
    description = RunDirectory.open(out).description
    assert Place.from_record(description["data"]) == place
    command = run_command(out, description)
    words = f"--column filename=photo --column y=species --column split=part --images {tmp_path}"
    assert f"{labels} --format csv {words}/img --out" in command
    assert len(Place.from_record(description["data"]).table()) == 60


def test_file_names_that_are_no_utf8(tmp_path: Path) -> None:
    """Old cameras and archives: check reads them, and so do a run, show and the report."""
    root = os.fsencode(tmp_path / "photos") + b"-\xe9"
    for label in (b"caf\xe9", b"dog"):
        os.makedirs(os.path.join(root, label))
        for i in range(30):
            with open(os.path.join(root, label, b"\xff%d.png" % i), "wb") as file:
                file.write(encode(picture(100 * len(label) + i)))
    place = Place.of(os.fsdecode(root))
    open_quietly(place, tmp_path / "run")
    run = RunDirectory.open(tmp_path / "run")
    table = Place.from_record(run.description["data"]).table()
    assert table.class_names == ("caf\\xe9", "dog") and str(table.ids[0]) == "caf\\xe9/\\xff0.png"
    assert CliRunner().invoke(app, ["show", str(run.path)]).exit_code == 0
    assert "caf\\xe9" in write_report(run).read_text(encoding="utf-8")
