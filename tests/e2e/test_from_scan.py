"""From a scan to a repaired classifier in one folder: what the scan did is kept and used."""

import csv
import json
import shutil

import numpy as np
import pytest
import torch
from PIL import Image

from d2cp.cli import main
from d2cp.core.files import read_json, write_json
from d2cp.debias.trained_files import load_artifact
from d2cp.disentangle.concept_files import load_concepts
from d2cp.pipeline.frozen_features import load_features
from d2cp.pipeline.transplanting import load_transplants
from d2cp.scan.bank import IMAGE_LENSES
from d2cp.scan.scan_files import load_scan
from damage import refit
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
TIER |= {"debias.class_fit": "solved", "debias.refit": "true"}


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


def test_both_heads_are_solved_on_training_and_validation_images(repaired):
    """Features are in units of the images that a model was fitted on."""
    features = load_features(repaired / "features")
    for stage, drawn in (("debias", {"class_decay", "read_out", "weight_xrm_y"}), ("erm", None)):
        model = load_artifact(repaired / stage)
        assert set(model.draws[0].settings) == (drawn or {"class_decay"})
        adapter = model.trained.classifier().adapter
        torch.testing.assert_close(adapter.mean, features[:300].mean(0))
        assert adapter.idle and model.trained.fitted.steps == 0


@pytest.mark.parametrize("words", [("--model", "d2cp", "--onnx"), ("--model", "erm")])
def test_solved_heads_are_exported_and_answer_as_the_run_did(
    scanned, repaired, tmp_path, capsys, words
):
    with (repaired / "evaluate" / "predictions.csv").open() as file:
        known = [line for line in csv.DictReader(file) if line["split"] == "test"][:6]
    assert d2cp("export", repaired, "--to", tmp_path / "model", *words) == 0
    said = capsys.readouterr().out
    assert ("model.onnx agrees with torch" in said) == ("--onnx" in words)
    files = [scanned / "data" / line["id"] for line in known]
    assert d2cp("predict", tmp_path / "model", *files) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for line, answer in zip(known, answers, strict=True):
        given = answer["probabilities"]["ab"[int(line[words[1]])]]
        assert given == pytest.approx(float(line[f"{words[1]}_p"]), abs=1e-3)


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
    assert "sentence" in found["mined"] and found["findings"] == [1, 2]
    edits = [p for p in found["pictures"] if p["kind"] == "edit"]
    assert {"pictures/edit-1.png", "pictures/edit-2.png"} <= {p["file"] for p in edits}
    assert all((tmp_path / "run" / "mine" / p["file"]).exists() for p in found["pictures"])


def test_an_older_or_damaged_reliance_breaks_no_report(repaired, tmp_path, capsys):
    """What an earlier version did not write is left out; what has a wrong form is told."""
    run = tmp_path / "run"
    shutil.copytree(repaired, run)
    path = run / "evaluate" / "reliance.json"
    whole = read_json(path)
    whole["findings"][0]["rise"] = True
    older = {**whole, "findings": [dict(f) for f in whole["findings"]]}
    for finding in older["findings"]:
        for key in ("beyond_chance", "transplant", "change", "change_interval"):
            finding.pop(key, None)
    for name, value, ends in (
        ("older", older, {0}),
        ("other list", {**whole, "findings": [5]}, {5}),
        ("no models", {**whole, "findings": [{"rank": 1}]}, {5}),
        ("sentence", {**whole, "findings": [{**whole["findings"][0], "sentence": []}]}, {5}),
        (
            "transplant",
            {**whole, "findings": [{**whole["findings"][0], "transplant": {"sentence": 7}}]},
            {5},
        ),
        ("empty", {**whole, "findings": []}, {0}),
    ):
        write_json(path, value)
        refit(run, path)
        for command in ("show", "report"):
            assert d2cp(command, run) in ends, name
            assert ends == {0} or f"delete {run / 'evaluate'}" in capsys.readouterr().err, name
    path.write_text("{")
    assert d2cp("report", run) == 5 and f"delete {run / 'evaluate'}" in capsys.readouterr().err


@pytest.fixture(scope="module")
def with_transplants(scanned, tmp_path_factory):
    """Groups by the finding that is a cast, with its cue exchanged in training images."""
    found = load_scan(scanned / "run" / "scan").findings
    (rank,) = [f.rank for f in found if f.lens in IMAGE_LENSES]
    out = tmp_path_factory.mktemp("transplants") / "run"
    more = {"debias.transplants": "true"}
    words = ("--findings", rank, "--cache", scanned / "cache", *settings(**more))
    assert d2cp("run", scanned / "data", "--out", out, "--quiet", *words) == 0
    return out, words


def test_exchanged_images_train_and_are_shown(with_transplants, scanned):
    out, _ = with_transplants
    made = load_transplants(out / "transplants")
    features = load_features(out / "features")
    assert made.exchanged.shape == made.controls.shape == (300, features.shape[1])
    with (out / "mine" / "pseudo.csv").open(newline="") as file:
        pseudo = np.array([int(line["pseudo"]) for line in csv.DictReader(file)])
    assert np.array_equal(made.values, 1 - pseudo[made.rows])
    # a control is nearer to its image than the same image with the other cast
    own = features[torch.from_numpy(made.rows)]
    nearer = (made.controls - own).norm(dim=1) < (made.exchanged - own).norm(dim=1)
    assert nearer.float().mean() > 0.7
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "What training also saw" in page
    assert read_json(out / "debias" / "debias.json")["config"]["transplants"] is True


def column_of(scanned) -> int:
    """The rank of the finding that is not in the picture."""
    found = load_scan(scanned / "run" / "scan").findings
    return next(f.rank for f in found if f.lens not in IMAGE_LENSES)


def test_of_two_findings_the_one_in_the_picture_is_exchanged(
    scanned, with_transplants, tmp_path, capsys
):
    """The other, a column, keeps its value: an image goes to the cell that differs in the cast."""
    found = load_scan(scanned / "run" / "scan").findings
    in_picture = [f.lens in IMAGE_LENSES for f in found[:2]]
    assert sorted(in_picture) == [False, True]
    out, more = tmp_path / "run", {"debias.transplants": "true"}
    words = ("--findings", "1,2", "--cache", scanned / "cache", *settings(**more))
    assert d2cp("run", scanned / "data", "--out", out, *words) == 0
    said = f"finding {column_of(scanned)} keeps its cue, its cue is not in the picture"
    assert f"transplants: {said}" in capsys.readouterr().err
    made = load_transplants(out / "transplants")
    cells = np.array(read_json(out / "mine" / "summary.json")["cells"])
    with (out / "mine" / "pseudo.csv").open(newline="") as file:
        pseudo = np.array([int(line["pseudo"]) for line in csv.DictReader(file)])
    before, after = cells[pseudo[made.rows]], cells[made.values]
    assert np.array_equal((before != after).all(axis=0), in_picture)
    assert np.array_equal((before != after).any(axis=0), in_picture)
    pages = [(run / "report.html").read_text("utf-8") for run in (out, with_transplants[0])]
    several, one = (page.count("What training also saw") for page in pages)
    assert several == one  # below one of the findings


def test_they_are_kept_and_made_again_where_they_are_damaged(with_transplants, scanned, capsys):
    out, words = with_transplants
    before = (out / "debias" / "model.safetensors").read_bytes()
    assert d2cp("run", scanned / "data", "--out", out, *words) == 0
    assert "transplants: unchanged, kept" in capsys.readouterr().err
    file = out / "transplants" / "transplants.safetensors"
    whole = file.read_bytes()
    file.write_bytes(whole[:-5])
    assert d2cp("run", scanned / "data", "--out", out, *words) == 0
    assert "transplants: started again" in capsys.readouterr().err
    assert file.read_bytes() == whole
    assert (out / "debias" / "model.safetensors").read_bytes() == before


def test_those_of_another_finding_are_not_left_lying(with_transplants, scanned, tmp_path, capsys):
    out, words = with_transplants
    shutil.copytree(out, tmp_path / "run")
    more = (*words, "--findings", column_of(scanned), "--force")
    assert d2cp("run", scanned / "data", "--out", tmp_path / "run", *more) == 0
    assert not (tmp_path / "run" / "transplants").exists()
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "What training also saw" not in page


def test_where_no_cue_can_be_exchanged_it_is_said(scanned, tmp_path, capsys):
    words = ("--findings", column_of(scanned), "--cache", scanned / "cache")
    more = settings(**{"debias.transplants": "true"})
    assert d2cp("run", scanned / "data", "--out", tmp_path / "run", *words, *more) == 0
    assert "transplants: left out, its cue is not in the picture" in capsys.readouterr().err
    assert not (tmp_path / "run" / "transplants").exists()
