"""The page of a scan: escaped, self-contained, whole; `d2cp report` writes it again."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from d2cp.cli import main
from d2cp.core.run_directory import RunDirectory
from d2cp.errors import RunError
from d2cp.report.build import write_report
from d2cp.report.scan_page import headline
from d2cp.report.steps import commands

HOSTILE = '<script>alert("x")</script>'


@pytest.fixture(scope="module")
def scanned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Grey noise with a cast that follows the class; a hostile class name; a model that answers by
    the cast; a test image that copies a training one."""
    folder = tmp_path_factory.mktemp("scan")
    draw = np.random.default_rng(0)
    n, side = 200, 24
    y = np.arange(n) % 2
    cue = np.where(draw.random(n) < 0.9, y, 1 - y)
    (folder / "data" / "img").mkdir(parents=True)
    rows, answers = [["filename", "split", "y"]], [["image", "prediction"]]
    for i in range(n):
        pixels = draw.integers(60, 180, (side, side, 3)).astype(np.uint8)
        pixels[..., 2] += np.uint8(60 * cue[i])
        name = f"img/{i}.png"
        Image.fromarray(pixels).save(folder / "data" / name)
        rows.append([name, str(int(i >= 150)), (HOSTILE, "dog")[y[i]]])
        if i >= 150:
            answers.append([name, (HOSTILE, "dog")[cue[i]]])
    for file, lines in (("data/metadata.csv", rows), ("answers.csv", answers)):
        with (folder / file).open("w", newline="") as out:
            csv.writer(out).writerows(lines)
    words = ["scan", "data", "--out", "run", "--cache", "cache", "--predictions", "answers.csv"]
    words[1:] = [str(folder / w) if w[0] != "-" else w for w in words[1:]]
    with pytest.raises(SystemExit) as stop:
        main([*words, "--json"])
    assert not stop.value.code
    return folder


def test_the_page_is_whole_escaped_and_asks_nobody(scanned: Path) -> None:
    page = (scanned / "run" / "report.html").read_text(encoding="utf-8")
    assert HOSTILE not in page and "&lt;script&gt;alert" in page
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?:https?:)?//""", page)
    assert "Content-Security-Policy" in page and "style=" not in page
    found = json.loads((scanned / "run" / "scan" / "findings.json").read_text())
    shown = [p for p in found["pictures"] if p["finding"] == 1]
    assert {"extremes", "heat", "pairs"} <= {p["kind"] for p in shown}
    assert page.count("data:image/") >= len(found["pictures"]) > 0
    for f in found["findings"]:
        assert f'id="finding-{f["rank"]}"' in page
    for title in ("Your model", "Copies across splits", "What to do next"):
        assert title in page


def test_a_model_that_reads_the_cast_is_told_so(scanned: Path) -> None:
    found = json.loads((scanned / "run" / "scan" / "predictions.json").read_text())
    first = found["findings"][0]
    assert first["leans"] and first["gap"] > 0.8 and found["images"] == 50
    assert first["victims"] and all(v["predicted"] != v["class"] for v in first["victims"])


def test_counts_pictures_and_files_agree(scanned: Path) -> None:
    folder = scanned / "run" / "scan"
    found = json.loads((folder / "findings.json").read_text())
    assert np.sum(found["cells"]["1"]["train"]) == 150
    for shown in found["pictures"]:
        assert shown["caption"] and shown["title"]
        with Image.open(folder / shown["file"]) as image:
            assert image.format == "PNG"


def test_report_writes_it_again_and_without_the_data(scanned: Path, tmp_path: Path) -> None:
    out = write_report(RunDirectory.open(scanned / "run"), tmp_path / "again.html")
    assert out.read_text() == (scanned / "run" / "report.html").read_text()
    moved = scanned / "elsewhere"
    (scanned / "data").rename(moved)
    try:
        page = write_report(RunDirectory.open(scanned / "run"), tmp_path / "b.html").read_text()
    finally:
        moved.rename(scanned / "data")
    assert "could not be read again" in page


def test_a_scan_of_an_earlier_version_is_refused_in_words(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "old")
    run.start({"version": "0.1", "data": {"name": "x", "fingerprint": "f"}, "scan_settings": {}})
    with run.writing("scan", "inputs") as folder:
        (folder / "findings.json").write_text('{"outcome": "none", "findings": [], "notes": []}')
    with pytest.raises(RunError, match="earlier version: it has no data"):
        write_report(run)


def test_one_sentence_for_every_outcome() -> None:
    strong = {"outcome": "found", "name": "texture", "agreement": 0.91}
    weak = {"outcome": "weak", "name": "layout", "agreement": 0.6}
    assert headline([strong, weak], ["a", "b"]).startswith("A model could cheat: “texture” alone")
    assert "1 further finding stands" in headline([strong, strong], ["a", "b"])
    assert headline([weak], ["a", "b"]).startswith("Nothing strong")
    assert headline([], ["a", "b"]).startswith("No lens")


def test_where_nothing_was_found_the_next_step_says_so() -> None:
    found = {"rank": 1, "outcome": "found"}
    weak = {"rank": 2, "outcome": "weak"}

    def first(*findings: dict[str, object]) -> list[str]:
        run = {"data": {"name": "x"}, "config": {"preset": "photo-cpu"}}
        return commands(Path("run"), run, {"findings": findings})[0].lines

    (command,) = first(found, weak)
    assert command.endswith("--findings 1")
    said, command = first(weak, {**weak, "rank": 3})
    assert said.startswith("# Nothing was found.") and command.endswith("--findings 2")
    assert first() == ["d2cp show run --json"]
