"""One line, `import d2cp`, and transformers loads an export; the folder says what it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from d2cp.backbone import load_backbone
from d2cp.core.files import write_json
from d2cp.core.run_directory import RunDirectory
from d2cp.debias.train import train_d2cp
from d2cp.debias.trained_files import Artifact, save_artifact
from d2cp.export.serving import Deployed
from d2cp.export.ship import ship
from debias_tiny import CONFIG, cmnist, labels_of, library_model

TABLE, STORE = cmnist()
NAMES = ("0-4", "<b>5|9")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with figures, exported under a strict umask; beside it an image."""
    root = tmp_path_factory.mktemp("shipped")
    library_model("vit").save_pretrained(root / "backbone")
    config = replace(CONFIG, head_init=0.5, max_steps=2)
    trained = train_d2cp(
        load_backbone(root / "backbone"), STORE, labels_of(TABLE), config, seed=0, quiet=True
    )
    run = RunDirectory(root / "run")
    run.path.mkdir()
    about = {"backbone": str(root / "backbone"), "preset": "demo", "seed": 3}
    run.start({"version": "1", "data": {"name": "my digits"}, "config": about})
    with run.writing("debias", "inputs") as stage:
        save_artifact(stage, Artifact(trained, str(root / "backbone"), NAMES, ("red", "green")))
    with run.writing("data", "inputs") as stage:
        counts = {"train": {"0": 5, "1": 6}, "test": {"0": 7, "1": 8}}
        about = {"name": "my digits", "fingerprint": "f", "class_names": NAMES}
        write_json(stage / "summary.json", {**about, "counts": counts})
    figures = {key: 0.5 for key in ("worst_group", "mean", "train_weighted_mean")}
    result = {
        "method": "d2cp",
        "seed": 3,
        "split": "test",
        "selection": "val_pseudo_groups",
        **figures,
    }
    result |= {"grouping": "pseudo", "intervals": {key: [0.25, 0.75] for key in figures}}
    result["groups"] = {"1,0": {"name": "<b>5|9, value 0", "n": 8, "accuracy": 0.625}}
    with run.writing("evaluate", "inputs") as stage:
        write_json(stage / "results.json", [result, {**result, "method": "erm", "mean": 0.9}])
    before = os.umask(0o027)
    try:
        ship(run.artifact("debias"), root / "model")
    finally:
        os.umask(before)
    Image.fromarray(STORE[TABLE.rows("test")[:1]][0]).save(root / "digit.png")
    return root


def python(code: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("imports", ["import d2cp, transformers", "import transformers, d2cp"])
def test_pipeline_and_auto_classes_after_one_import(folder: Path, imports: str) -> None:
    code = f"""
{imports}
import json
from transformers import AutoConfig, AutoModelForImageClassification, pipeline
config = AutoConfig.from_pretrained("model")
model = AutoModelForImageClassification.from_pretrained("model")
found = pipeline("image-classification", model="model")("digit.png")
print(json.dumps([type(config).__name__, type(model).__name__, found]))
"""
    config, model, found = json.loads(python(code, folder).splitlines()[-1])
    assert (config, model) == ("D2CPClassifierConfig", "D2CPForImageClassification")
    (record,) = Deployed.load(folder / "model").predict([folder / "digit.png"])
    assert {f["label"]: pytest.approx(f["score"], abs=1e-4) for f in found} == (
        record["probabilities"]
    )


def test_importing_d2cp_imports_neither_torch_nor_transformers(folder: Path) -> None:
    heavy = ("torch", "transformers", "numpy")
    code = f"import sys, d2cp; print([name for name in {heavy} if name in sys.modules])"
    assert python(code, folder).strip() == "[]"


def test_other_models_are_found_as_before(folder: Path) -> None:
    code = "import d2cp, transformers as t; print(t.AutoConfig.from_pretrained('backbone'))"
    assert "ViTConfig" in python(code, folder)


def test_the_folder_names_no_place_of_this_machine(folder: Path) -> None:
    for name in ("config.json", "preprocessor_config.json", "README.md"):
        assert str(folder) not in (folder / "model" / name).read_text(encoding="utf-8")


def test_modes_follow_the_umask(folder: Path) -> None:
    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in (folder / "model").iterdir()}
    assert len(modes) == 4 and set(modes.values()) == {"0o640"}


def test_the_model_card_tells_data_groups_figures_and_use(folder: Path) -> None:
    card = (folder / "model" / "README.md").read_text(encoding="utf-8")
    for said in (
        "pipeline_tag: image-classification",
        "# my digits: image classifier",
        "backbone backbone (vit, frozen), preset demo, seed 3, d2cp 1",
        "| &lt;b&gt;5\\|9 | 6 | 8 |",
        "| worst group (suspected groups) | 50.0 | 25.0 to 75.0 |",
        "| &lt;b&gt;5\\|9, value 0 | 8 | 62.5 |",
        "## Intended use",
        "import d2cp",
        "--onnx",
    ):
        assert said in card
    assert "90.0" not in card and "<b>" not in card  # ERM's figure; mark-up of a class name
