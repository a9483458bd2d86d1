"""`d2cp scan` end to end on a small folder with a planted colour."""

import csv
import json

import numpy as np
import pytest
from PIL import Image

from d2cp.cli import main
from d2cp.errors import DataError
from d2cp.scan.lenses.user_columns import read_columns
from d2cp.scan.scan_files import load_scan


def make_folder(folder, n=120, agree=0.9, side=32, seed=0):
    """Grey noise; the label goes with a bluish cast on a share `agree` of the images."""
    draw = np.random.default_rng(seed)
    y = np.arange(n) % 2
    cue = np.where(draw.random(n) < agree, y, 1 - y)
    (folder / "img").mkdir(parents=True)
    with (folder / "metadata.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["filename", "split", "y", "site"])
        for i in range(n):
            pixels = draw.integers(60, 180, (side, side, 3)).astype(np.uint8)
            pixels[..., 2] += np.uint8(50 * cue[i])
            Image.fromarray(pixels).save(folder / "img" / f"{i}.png")
            writer.writerow([f"img/{i}.png", int(i >= n * 3 // 4), y[i], "ab"[y[i]]])
    return y, cue


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main([str(a) for a in arguments])
    out, _ = capsys.readouterr()
    return int(stop.value.code or 0), out


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "planted"
    return folder, *make_folder(folder)


def test_scan_finds_the_planted_cast(capsys, tmp_path, data):
    folder, _, cue = data
    scores = tmp_path / "scores.csv"
    command = ("scan", folder, "--out", tmp_path / "run", "--scores-out", scores, "--cache")
    code, out = run(capsys, *command, tmp_path / "cache", "--json", "--fail-on", "found")
    found = json.loads(out)
    assert code == 10 and found["outcome"] == "found"
    first = found["findings"][0]
    assert first["rank"] == 1 and "colour" in first["lenses"] and first["p_value"] <= 0.01
    with scores.open() as file:
        lines = [line for line in csv.DictReader(file) if line["finding"] == "1"]
    assert list(lines[0]) == ["image", "split", "class", "finding", "value", "score"]
    value = np.array([int(line["value"]) for line in lines])
    assert len(lines) == 120 and np.mean(value == cue) > 0.97

    loaded = load_scan(tmp_path / "run" / "scan")
    assert np.array_equal(loaded.findings[0].value, value)
    assert loaded.findings[0].to_dict() == first

    code, out = run(capsys, "show", tmp_path / "run", "--json")
    assert code == 0 and json.loads(out)["findings"] == found["findings"]


def test_a_column_is_a_lens(capsys, tmp_path, data):
    folder, *_ = data
    command = ("scan", folder, "--out", tmp_path / "run", "--cache", tmp_path / "cache")
    code, out = run(capsys, *command, "--columns", "site", "--json")
    assert code == 0
    assert json.loads(out)["findings"][0]["lens"] == "column site"
    command = ("scan", folder, "--out", tmp_path / "other", "--cache", tmp_path / "cache")
    code, _ = run(capsys, *command, "--columns", "nowhere")
    assert code == 3
    with pytest.raises(DataError, match="the class itself"):
        read_columns(folder, ["site", "y"], [], {})
    with pytest.raises(DataError, match="the class itself"):
        read_columns(folder, ["site"], [], {"y": "site"})


def test_a_limit_that_was_asked_for_is_kept(capsys, tmp_path, data):
    folder, *_ = data
    scores = tmp_path / "scores.csv"
    command = ("scan", folder, "--out", tmp_path / "run", "--scores-out", scores, "--cache")
    code, _ = run(capsys, *command, tmp_path / "cache", "--set", "train_limit=60", "--json")
    assert code == 0
    with scores.open() as file:
        lines = [line for line in csv.DictReader(file) if line["finding"] == "1"]
    assert sum(line["split"] == "train" for line in lines) == 60
