"""Cues planted on photographs of one's own: shares, splits, classes; and how a scan is scored."""

import csv
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cues import CUES
from planted_score import lines, read_cues, read_scores, read_well
from planting import chosen_classes, plant_folder


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A folder a class, of oblong photographs."""
    draw = np.random.default_rng(0)
    for name, count in (("cat", 60), ("dog", 40), ("fox", 20)):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for n in range(count):
            pixels = draw.integers(60, 120, (40, 60, 3)).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{n}.png")
    return tmp_path / "photos"


def records(folder: Path) -> list[dict[str, str]]:
    with (folder / "metadata.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("usual", [False, True])
def test_shares_are_met_in_training_and_halves_elsewhere(
    photos: Path, tmp_path: Path, usual: bool
) -> None:
    out = tmp_path / "out"
    plant_folder(photos, out, {"cast": 0.8}, 3, classes="cat,dog+fox", usual_val=usual)
    found = records(out)
    assert len(found) == 120 and sum(r["y"] == "1" for r in found) == 60
    assert len({r["filename"] for r in found}) == 120
    for split, share in (("0", 0.8), ("1", 0.8 if usual else 0.5), ("2", 0.5)):
        for label in ("0", "1"):
            mine = [int(r["cue_cast"]) for r in found if (r["split"], r["y"]) == (split, label)]
            want = share if label == "1" else 1 - share
            assert sum(mine) == round(want * len(mine)) and mine
    blue = {"0": [], "1": []}
    for r in found:
        with Image.open(out / r["filename"]) as image:
            assert image.size == (60, 40)
            mean = np.asarray(image, float).mean((0, 1))
        blue[r["cue_cast"]].append(mean[2] - mean[0])
    assert min(blue["1"]) > max(blue["0"]) + 5


def test_classes_are_two_that_are_there(photos: Path, tmp_path: Path) -> None:
    names = ("cat", "dog", "fox")
    assert chosen_classes("fox,cat+dog", names) == [{2}, {0, 1}]
    assert chosen_classes("", names[:2]) == [{0}, {1}]
    for wrong in ("", "cat", "cat,dog,fox", "cat,cow"):
        with pytest.raises(SystemExit, match="there are cat, dog, fox"):
            chosen_classes(wrong, names)
    with pytest.raises(SystemExit, match="background"):
        plant_folder(photos, tmp_path / "out", {"background": 0.9}, classes="cat,dog")


def test_what_cannot_be_read_is_left_out(photos: Path, tmp_path: Path) -> None:
    (photos / "cat" / "broken.jpg").write_bytes(b"no picture")
    plant_folder(photos, tmp_path / "whole", {"cast": 0.8}, classes="cat,dog")
    rows = (tmp_path / "whole" / "metadata.csv").read_text().splitlines()
    there = len([*(photos / "cat").iterdir(), *(photos / "dog").iterdir()])
    assert len(rows) == there  # a heading, and all but the broken one


def test_marks_have_masks_where_they_are(photos: Path, tmp_path: Path) -> None:
    plant_folder(photos, tmp_path / "out", {"mark": 1.0}, classes="cat,dog")
    marked = [r for r in records(tmp_path / "out") if r["cue_mark"] == "1"]
    masks = {p.stem for p in (tmp_path / "out" / "masks").rglob("*.png")}
    assert masks == {Path(r["filename"]).stem for r in marked}


@pytest.mark.parametrize("name", sorted(CUES.keys() - {"background"}))
def test_every_cue_changes_a_photograph_of_any_shape_and_keeps_its_size(name: str) -> None:
    draw = np.random.default_rng(1)
    for size in ((200, 120), (90, 160)):
        photo = Image.fromarray(draw.integers(0, 255, (*size[::-1], 3)).astype(np.uint8))
        made = CUES[name](photo, np.random.default_rng(2))
        assert made.size == size and made.mode == "RGB"
        assert np.abs(np.asarray(made, int) - np.asarray(photo, int)).max() > 5


def test_the_finding_that_reads_the_cue_is_named_with_its_figures(tmp_path: Path) -> None:
    (tmp_path / "planted").mkdir()
    (tmp_path / "scan").mkdir()
    split = ("train", "val", "test")
    with (tmp_path / "planted" / "metadata.csv").open("w") as file:
        file.write("filename,split,y,cue_mark\n")
        for n in range(12):
            file.write(f"{n}.jpg,{n // 4},{n % 2},{n // 2 % 2}\n")
    with (tmp_path / "scan" / "scores.csv").open("w") as file:
        file.write("image,split,class,finding,value,score\n")
        for finding in (1, 2):
            for n in range(12):
                read = n % 2 if finding == 1 else n // 2 % 2
                file.write(f"{n}.jpg,{split[n // 4]},{n % 2},{finding},{read},{read + 0.1}\n")
    cues, scores = read_cues(tmp_path / "planted"), read_scores(tmp_path / "scan")
    assert read_well(scores[1]["test"], cues["mark"]) == {"auroc": 0.5, "balanced": 0.5}
    turned = {image: (-s, 1 - v) for image, (s, v) in scores[2]["test"].items()}
    assert read_well(turned, cues["mark"]) == {"auroc": 0.0, "balanced": 0.0}
    findings = [
        {"rank": rank, "name": f"thing {rank}", "outcome": "weak", "strength": 0.3 / rank}
        for rank in (1, 2)
    ]
    first, *others = lines(cues, scores, findings)
    assert first.startswith("mark: finding 2, weak 0.15; train AUROC 1.000")
    assert others == ["  1. thing 1: weak 0.30", "  2. thing 2: weak 0.15"]
