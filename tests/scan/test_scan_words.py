"""`d2cp scan --words`, mechanics on a tiny random CLIP: planted words, files, what is kept."""

from __future__ import annotations

import html
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from test_scan_command import make_folder, run
from torch.nn.functional import normalize

from d2cp.backbone import load_backbone
from d2cp.backbone.text_tower import ClassText, TextTower
from d2cp.core.run_directory import RunDirectory
from d2cp.data import load_table
from d2cp.data.image_access import load_images
from d2cp.data.pixels import centre_view
from d2cp.report.build import write_report
from d2cp.scan.finding import Finding
from d2cp.scan.finding_words import words_of
from d2cp.scan.phrases import Phrases
from d2cp.scan.scan_files import load_scan
from tiny_clip import write_clip

WORDS = "# planted by the test\nblue sky\n<b>red</b>\nnothing\n"
OWN = Phrases.vectors
QUICK = ("scan.permutations=19", "scan.max_findings=2", "scan.centres=20")


@dataclass(frozen=True)
class Place:
    """A scanned folder in which `blue sky` is where images with the cast are."""

    root: Path

    def scan(self, capsys: Any, *options: str, out: str = "run") -> tuple[int, str]:
        command = ("scan", self.root / "data", "--out", self.root / out)
        quick = [word for setting in QUICK for word in ("--set", setting)]
        return run(capsys, *command, *quick, "--cache", self.root / "cache", *options)

    def words(self, file: str = "words.txt") -> tuple[str, ...]:
        return "--words", str(self.root / file), "--backbone", str(self.root / "clip")

    def manifest(self, out: str = "run") -> Any:
        return json.loads((self.root / out / "scan" / "manifest.json").read_text())

    def findings(self, out: str = "run") -> Any:
        return json.loads((self.root / out / "scan" / "findings.json").read_text())


@torch.no_grad()
def planted_text(root: Path, y: Any, cue: Any) -> ClassText:
    """The cue's direction among embeddings of images of a class, its opposite, and nothing."""
    table = load_table(root / "data")
    _, store = load_images(table, 28, root / "cache", "stretch", quiet=True)
    backbone = load_backbone(root / "clip")
    pixels = backbone.normalise(centre_view(store[np.arange(len(table))], 28))
    projection = TextTower.load(str(root / "clip")).encode(["x"]).projection
    images = normalize(backbone.features(pixels) @ projection.T, dim=1)
    gaps = [
        images[(y == c) & (cue == 1)].mean(0) - images[(y == c) & (cue == 0)].mean(0)
        for c in (0, 1)
    ]
    gap = gaps[0] + gaps[1]
    vectors = torch.stack([gap, -gap, torch.zeros_like(gap)])
    return ClassText(normalize(vectors, dim=1), projection)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Any:
    root = tmp_path_factory.mktemp("words")
    y, cue = make_folder(root / "data")
    (root / "clip").mkdir()
    write_clip(root / "clip")
    (root / "words.txt").write_text(WORDS)
    text = planted_text(root, y, cue)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Phrases, "vectors", lambda self: text)
        yield Place(root)


@pytest.fixture
def scanned(place: Place, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    code, out = place.scan(capsys, *place.words(), "--json")
    assert code == 0
    found: dict[str, Any] = json.loads(out)
    return found


def test_the_planted_word_goes_with_its_side(place: Place, scanned: dict[str, Any]) -> None:
    first = scanned["findings"][0]
    assert "colour" in first["lenses"]
    words = first["words"]
    assert set(words) == {"images", "values", "sentence"}
    low, high = words["values"]  # value 1 speaks for class 1, which goes with the cast
    assert [low["value"], high["value"]] == first["value_names"]
    assert high["words"][0]["word"] == "blue sky" and low["words"][0]["word"] == "<b>red</b>"
    for side in (low, high):
        scores = [w["score"] for w in side["words"]]
        assert len(scores) == 3 and scores == sorted(scores, reverse=True)
        assert set(side) == {"value", "chance", "words"}
        assert [w["beyond_chance"] for w in side["words"]] == [s > side["chance"] for s in scores]
        assert side["words"][0]["beyond_chance"]
    nothing = next(w for w in high["words"] if w["word"] == "nothing")
    assert nothing["score"] == 0 and not nothing["beyond_chance"]
    assert 20 <= words["images"] <= 90  # the training images
    assert "blue sky" in words["sentence"] and "nothing" not in words["sentence"]


def test_show_and_the_page_say_what_the_file_says(
    place: Place, scanned: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert place.findings()["findings"] == scanned["findings"]
    code, out = run(capsys, "show", place.root / "run", "--json")
    assert code == 0 and json.loads(out)["findings"] == scanned["findings"]
    sentence = scanned["findings"][0]["words"]["sentence"]
    code, out = run(capsys, "show", place.root / "run")
    assert code == 0 and f"  1. {sentence}" in out
    page = write_report(RunDirectory.open(place.root / "run")).read_text(encoding="utf-8")
    assert html.escape(sentence) in page and "<b>red" not in page
    loaded = load_scan(place.root / "run" / "scan")
    assert [f.to_dict() for f in loaded.findings] == scanned["findings"]
    source = place.findings()["words"]
    assert source["phrases"] == 3 and source["template"] == "a photo of {}"


def test_a_scan_without_words_keeps_its_bits_and_its_inputs(
    place: Place, scanned: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert place.scan(capsys, "--json", out="plain")[0] == 0
    plain, worded = place.manifest("plain"), place.manifest()
    assert plain["inputs"] == worded["inputs"]
    assert plain["files"].keys() == worded["files"].keys()
    differ = [name for name in plain["files"] if plain["files"][name] != worded["files"][name]]
    assert differ == ["findings.json"]
    whole = place.findings()
    del whole["words"]
    for finding in whole["findings"]:
        finding.pop("words", None)
    assert whole == place.findings("plain")
    assert '"words"' not in (place.root / "plain" / "scan" / "findings.json").read_text()


def test_words_are_kept_until_others_are_asked_for(
    place: Place, scanned: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    before = place.manifest()
    code, _ = place.scan(capsys, *place.words(), "--quiet")
    assert code == 0 and place.manifest() == before
    code, _ = place.scan(capsys, "--quiet")  # as `run` in this folder asks for the scan
    assert code == 0 and place.manifest() == before
    beside = place.root / "run" / "scan" / "predictions.json"
    beside.write_text("{}")
    (place.root / "other.txt").write_text(WORDS.replace("<b>red</b>", "green"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("d2cp.report.summary.read_answers", lambda run: None)
        patch.setattr("d2cp.report.scan_page.read_answers", lambda run: None)
        code, out = place.scan(capsys, *place.words("other.txt"), "--json")
    low = json.loads(out)["findings"][0]["words"]["values"][0]
    assert code == 0 and low["words"][0]["word"] == "green"
    assert beside.read_text() == "{}"
    after = place.manifest()
    assert after["inputs"] == before["inputs"] and "predictions.json" not in after["files"]
    assert not RunDirectory.open(place.root / "run").damage("scan")
    beside.unlink()


def test_a_clip_s_own_texts_give_the_same_bits_twice(
    place: Place, scanned: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """Random weights: only that the way through both towers works and repeats itself."""
    shutil.copytree(place.root / "run", place.root / "own")
    (place.root / "few.txt").write_text("sea\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Phrases, "vectors", OWN)
        found = []
        for file in ("few.txt", "words.txt", "few.txt"):
            assert place.scan(capsys, *place.words(file), "--quiet", out="own")[0] == 0
            found.append(place.manifest("own")["files"]["findings.json"]["sha256"])
    assert found[0] == found[2] != found[1]
    for found_words in (f["words"] for f in place.findings("own")["findings"]):
        assert found_words["images"] > 0 and all(v["chance"] > 0 for v in found_words["values"])


def finding(values: int) -> Finding:
    made = object.__new__(Finding)
    object.__setattr__(made, "rank", 1)
    object.__setattr__(made, "value_names", tuple(f"look {v}" for v in range(values)))
    return made


def test_noise_goes_with_no_finding() -> None:
    draw = np.random.default_rng(0)
    y, value = np.arange(80) % 2, np.arange(80) // 2 % 2
    words = words_of(finding(2), list("abcdefghij"), draw.normal(size=(80, 10)), y, value, 0)
    assert "No word of the file goes with this finding" in words["sentence"]
    assert [len(side["words"]) for side in words["values"]] == [5, 5]
    assert not any(w["beyond_chance"] for side in words["values"] for w in side["words"])


def test_a_value_of_many_is_set_against_the_rest() -> None:
    draw = np.random.default_rng(0)
    y, value = np.arange(240) % 3, np.arange(240) // 3 % 8
    texts = [f"word {v}" for v in range(8)]
    cosines = draw.normal(size=(240, 8)) + 3 * (value[:, None] == np.arange(8))
    words = words_of(finding(9), texts, cosines, y, value, 0)
    assert [side["value"] for side in words["values"]] == [f"look {v}" for v in range(8)]
    for v, side in enumerate(words["values"]):
        assert [w["word"] for w in side["words"] if w["beyond_chance"]] == [f"word {v}"]
    assert words["sentence"].count("with “look") == 6
    assert words["sentence"].endswith("; further values with words: 2.")


def test_classes_of_one_value_leave_nothing_to_compare() -> None:
    none = np.zeros(0, dtype=np.int64)
    words = words_of(finding(2), ["a"], np.zeros((0, 1)), none, none, 0)
    assert words["images"] == 0 and words["values"] == []
    assert "could not be compared" in words["sentence"]
