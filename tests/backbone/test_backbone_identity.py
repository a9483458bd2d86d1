"""A backbone is its content: a moved folder is the same one, replaced weights are another."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from rich.console import Console

from d2cp.backbone import load_backbone
from d2cp.backbone.identity import backbone_key, resolved
from d2cp.config import load_config
from d2cp.data import load_table
from d2cp.debias.train import train_d2cp
from d2cp.debias.trained_files import Artifact, save_artifact
from d2cp.errors import BackboneError
from d2cp.export.ship import ship
from d2cp.pipeline.opening import open_run
from debias_tiny import CONFIG, cmnist, labels_of, library_model


def other_weights(folder: Path) -> None:
    model = library_model("vit")
    with torch.no_grad():
        next(model.parameters()).add_(0.5)
    model.save_pretrained(folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    library_model("vit").save_pretrained(tmp_path / "vit")
    return tmp_path / "vit"


def test_content_not_place(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = backbone_key(str(folder))
    shutil.copytree(folder, tmp_path / "copy")
    assert backbone_key(str(tmp_path / "copy")) == key
    other_weights(folder)
    assert backbone_key(str(folder)) != key
    assert backbone_key("embedded") == "embedded"
    monkeypatch.chdir(tmp_path)
    assert resolved("vit") == str(folder.resolve()) and resolved("embedded") == "embedded"


def test_replaced_weights_make_stages_out_of_date(folder: Path, tmp_path: Path) -> None:
    config = replace(load_config("demo"), backbone=str(folder))
    table = load_table("cmnist", limit=20)
    with open_run(table, tmp_path / "run", config, console=Console(quiet=True)) as context:
        before = context.inputs("features")
        concepts = context.inputs("disentangle", without=("scan",))
        other_weights(folder)
        assert context.inputs("features") != before
        assert context.inputs("disentangle", without=("scan",)) == concepts


def test_old_prompts_are_not_joined_to_new_weights(folder: Path, tmp_path: Path) -> None:
    table, store = cmnist(60)
    config = replace(CONFIG, max_steps=1)
    trained = train_d2cp(load_backbone(folder), store, labels_of(table), config, seed=0, quiet=True)
    (tmp_path / "debias").mkdir()
    names = ("0-4", "5-9"), ("red", "green")
    key = backbone_key(str(folder))
    artifact = Artifact(trained, str(folder), *names, backbone_key=key)
    save_artifact(tmp_path / "debias", artifact)
    ship(tmp_path / "debias", tmp_path / "model")
    other_weights(folder)
    with pytest.raises(BackboneError, match="has changed"):
        ship(tmp_path / "debias", tmp_path / "again")
