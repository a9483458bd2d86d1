"""From a scan to a repaired classifier in one folder: what the scan did is kept and used."""

import csv
import json
import shutil

import numpy as np
import pytest
from PIL import Image

from d2cp.cli import main
from d2cp.core.files import read_json, write_json
from d2cp.disentangle.concept_files import load_concepts
from d2cp.scan.bank import IMAGE_LENSES
from d2cp.scan.scan_files import load_scan
from e2e_settings import arguments

WHOLE = {"train_limit": 0, "val_limit": 0, "test_limit": 0}
LENSES = {
    "size": 24,
    "permutations": 19,
    "alpha": 0.1,
    "centres": 12,
    "max_findings": 2,
    "columns": '["site"]',
}
TIER = {"debias.tier": "features", "debias.feature_draws": 1}


def d2cp(*words: object) -> int:
    try:
        main([str(w) for w in words])
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def lenses() -> list[str]:
    return [word for key, value in LENSES.items() for word in ("--set", f"scan.{key}={value}")]


def settings(**more: object) -> list[str]:
    own = {f"scan.{key}": value for key, value in LENSES.items()}
    return arguments(**WHOLE, **TIER, **own, **more)


@pytest.fixture(scope="module")
def scanned(tmp_path_factory):
    """Noise with two cues: a bluish cast, and a column of the CSV."""
    folder = tmp_path_factory.mktemp("from-scan")
    draw = np.random.default_rng(0)
    n, side = 360, 24
    y = np.arange(n) % 2
    cast, site = (np.where(draw.random(n) < 0.9, y, 1 - y) for _ in range(2))
    (folder / "data" / "img").mkdir(parents=True)
    with (folder / "data" / "metadata.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["filename", "split", "y", "site"])
        for i in range(n):
            pixels = draw.integers(60, 180, (side, side, 3)).astype(np.uint8)
            pixels[..., 2] += np.uint8(60 * cast[i])
            Image.fromarray(pixels).save(folder / "data" / "img" / f"{i}.png")
            split = 0 if i < 240 else 1 if i < 300 else 2
            writer.writerow([f"img/{i}.png", split, "ab"[y[i]], "nm"[site[i]]])
    words = ("--cache", folder / "cache", "--quiet", *lenses())
    assert d2cp("scan", folder / "data", "--out", folder / "run", *words) == 0
    return folder


@pytest.fixture(scope="module")
def repaired(scanned):
    made = (scanned / "run" / "scan" / "manifest.json").stat().st_mtime_ns
    words = ("--findings", "1,2", "--cache", scanned / "cache", "--quiet", *settings())
    assert d2cp("run", scanned / "data", "--out", scanned / "run", *words) == 0
    assert (scanned / "run" / "scan" / "manifest.json").stat().st_mtime_ns == made
    return scanned / "run"


def test_the_groups_are_the_findings_and_no_concept_model_is_trained(repaired):
    found = read_json(repaired / "mine" / "summary.json")
    assert found["findings"] == [1, 2] and len(found["value_names"]) == found["values"]
    assert not (repaired / "disentangle").exists()
    findings = load_scan(repaired / "scan").findings
    with (repaired / "mine" / "pseudo.csv").open() as file:
        pseudo = np.array([int(line["pseudo"]) for line in csv.DictReader(file)])
    names = np.array(found["value_names"])[pseudo]
    pairs = zip(findings[0].value, findings[1].value, strict=True)
    product = [f"{findings[0].value_names[a]}, {findings[1].value_names[b]}" for a, b in pairs]
    assert np.mean(names == np.array(product)) > 0.9  # the others were merged
    assert len(found["warnings"]) == len(found["merged"])


def test_reliance_before_and_after_is_in_show_and_report(repaired, capsys):
    assert d2cp("show", repaired, "--json") == 0
    whole = json.loads(capsys.readouterr().out)
    assert [f["rank"] for f in whole["reliance"]["findings"]] == [1, 2]
    for f in whole["reliance"]["findings"]:
        assert f["used"] and {"gap", "interval"} <= f["erm"].keys() & f["d2cp"].keys()
        assert f["rise"] == (f["change"] > 0)
        seen = load_scan(repaired / "scan").findings[f["rank"] - 1].lens in IMAGE_LENSES
        assert (f["transplant"] is not None) == seen
        assert not seen or {"flips", "control", "gap"} <= f["transplant"]["d2cp"].keys()
    assert d2cp("show", repaired) == 0
    said = capsys.readouterr().out
    assert "Reliance on each finding" in said
    rises = [f for f in whole["reliance"]["findings"] if f["rise"]]
    assert ("ROSE" in said) == any(f["beyond_chance"] for f in rises)
    page = (repaired / "report.html").read_text(encoding="utf-8")
    for part in ('id="finding-1"', 'id="finding-2"', "before → after", 'name="finding"'):
        assert part in page
    assert ("▲ rose" in page) == bool(rises)
    assert "A small diffusion model" not in page


def test_an_unknown_finding_is_refused_with_what_there_is(scanned, tmp_path, capsys):
    shutil.copytree(scanned / "run", tmp_path / "run")
    words = ("--cache", scanned / "cache", "--quiet", *settings())
    assert d2cp("run", scanned / "data", "--out", tmp_path / "run", "--findings", 7, *words) == 2
    err = capsys.readouterr().err
    assert "there is no finding 7" in err
    assert load_scan(tmp_path / "run" / "scan").findings[0].name in err
    assert d2cp("run", scanned / "data", "--out", tmp_path / "run", "--findings", "x") == 2


def test_a_person_has_the_last_word_on_each_finding(scanned, repaired, tmp_path, capsys):
    shutil.copytree(repaired, tmp_path / "run")
    first = load_scan(repaired / "scan").findings[0]
    image = "img/0.png"
    corrections = {
        "schema": 1,
        "data": read_json(repaired / "run.json")["data"]["fingerprint"],
        "concepts_are_class": [],
        "flip": {},
        "findings_are_class": [2],
        "finding_flip": {"1": {image: 1 - int(first.value[0])}},
    }
    write_json(tmp_path / "c.json", corrections)
    words = ("--cache", scanned / "cache", "--quiet", "--corrections", tmp_path / "c.json")
    command = ("discover", scanned / "data", "--out", tmp_path / "run", *words, *settings())
    assert d2cp(*command, "--findings", "1,2") == 2
    assert "finding 2 is the class itself" in capsys.readouterr().err
    assert d2cp(*command, "--findings", "1", "--labels-out", tmp_path / "l.csv") == 0
    with (tmp_path / "l.csv").open() as file:
        pseudo = {line["image"]: int(line["pseudo"]) for line in csv.DictReader(file)}
    assert pseudo[image] == 1 - int(first.value[0])
    assert sum(v != first.value[i] for i, v in enumerate(pseudo.values())) == 1


def test_findings_are_concepts_that_the_model_draws(scanned, tmp_path):
    shutil.copytree(scanned / "run" / "scan", tmp_path / "run" / "scan")
    shutil.copytree(scanned / "run" / "data", tmp_path / "run" / "data")
    record = {k: v for k, v in read_json(scanned / "run" / "run.json").items()}
    write_json(tmp_path / "run" / "run.json", record)
    more = {"scan.use": "true", "disentangle.concepts": 8}
    words = ("--cache", scanned / "cache", "--quiet", *settings(**more))
    assert d2cp("discover", scanned / "data", "--out", tmp_path / "run", *words) == 0
    known, _ = load_concepts(tmp_path / "run" / "disentangle")
    findings = load_scan(tmp_path / "run" / "scan").findings
    for column, f in zip(known.scalars[:, -2:].T, findings, strict=True):
        assert np.corrcoef(column, f.score)[0, 1] == pytest.approx(1, abs=1e-5)
        assert column[:240].std() == pytest.approx(1, abs=1e-3)
    found = read_json(tmp_path / "run" / "mine" / "summary.json")
    assert "sentence" in found["mined"] and found["findings"] == [1]
    edits = [p for p in found["pictures"] if p["kind"] == "edit"]
    assert {"pictures/edit-1.png", "pictures/edit-2.png"} <= {p["file"] for p in edits}
    assert all((tmp_path / "run" / "mine" / p["file"]).exists() for p in found["pictures"])
