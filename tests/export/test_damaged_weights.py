"""Weights that are absent, too many, of another shape or not finite are refused, never guessed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from d2cp.backbone import load_backbone
from d2cp.debias.train import train_d2cp
from d2cp.debias.trained_files import Artifact, load_artifact, save_artifact
from d2cp.disentangle.concept_files import CONCEPTS, load_concepts, save_concepts
from d2cp.disentangle.extract import Concepts
from d2cp.errors import RunError
from d2cp.export.hugging_face import D2CPForImageClassification
from d2cp.export.serving import Deployed
from d2cp.export.ship import ship
from debias_tiny import CONFIG, cmnist, labels_of, library_model

Tensors = dict[str, torch.Tensor]
WEIGHTS = "model.safetensors"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """root/debias: an artifact; root/model: its export."""
    from dataclasses import replace

    root = tmp_path_factory.mktemp("made")
    library_model("vit").save_pretrained(root / "backbone")
    table, store = cmnist(60)
    config = replace(CONFIG, max_steps=1)
    backbone = load_backbone(root / "backbone")
    trained = train_d2cp(backbone, store, labels_of(table), config, seed=0, quiet=True)
    (root / "debias").mkdir()
    names = ("0-4", "5-9"), ("red", "green")
    save_artifact(root / "debias", Artifact(trained, str(root / "backbone"), *names))
    ship(root / "debias", root / "model")
    return root


def copy_of(folder: Path, to: Path, change: Callable[[Tensors], Any]) -> Path:
    shutil.copytree(folder, to)
    tensors = load_file(to / WEIGHTS)
    change(tensors)
    save_file(tensors, to / WEIGHTS, metadata={"format": "pt"})
    return to


def without(name: str) -> Callable[[Tensors], Any]:
    return lambda tensors: tensors.pop(name)


def extra(tensors: Tensors) -> None:
    tensors["head.more"] = torch.zeros(3)


def reshaped(name: str) -> Callable[[Tensors], Any]:
    return lambda tensors: tensors.update({name: tensors[name][..., :-1].contiguous()})


def not_finite(name: str) -> Callable[[Tensors], Any]:
    return lambda tensors: tensors[name].view(-1)[:1].fill_(float("nan"))


DAMAGE = {  # the last word is the weight that the message names
    "no head.bias": without("head.bias"),
    "no prefix_values": without("prefix_values"),
    "no backbone.cls": without("backbone.cls"),
    "an extra head.more": extra,
    "a cut head.weight": reshaped("head.weight"),
    "a cut prefix_keys": reshaped("prefix_keys"),
    "nan in head.weight": not_finite("head.weight"),
}


GONE = "(gone)"


@pytest.mark.parametrize("damage", DAMAGE)
def test_an_export_with_other_weights_is_refused(made: Path, tmp_path: Path, damage: str) -> None:
    folder = copy_of(made / "model", tmp_path / "model", DAMAGE[damage])
    with pytest.raises(RunError, match=damage.split()[-1]):
        Deployed.load(folder)
    with pytest.raises(RunError):  # and so by transformers alone
        D2CPForImageClassification.from_pretrained(folder)


@pytest.mark.parametrize(
    "change",
    [
        {"image_size": 0},
        {"resize": 10**9},
        {"resize": "many"},
        {"id2label": {"0": "only one"}},
        {"backbone": None},
        {"backbone": {"model_type": "vit", "hidden_size": -4}},
        {"backbone": {"model_type": "../../etc"}},
        {"prompt_length": -1},
        {"prompt_length": "x"},
        {"adapter_hidden": 5},
        {"head_bias": False},
        {"shortcut_labels": ["a", "b"]},
        {"centre_crop": -1},
        {"centre_crop": "x"},
        {"centre_crop": []},
        {"head_bias": 10**30},
        {"id2label": {"0": "another", "1": "name"}},
        *({name: GONE} for name in ("resize", "centre_crop", "id2label", "shortcut_labels")),
    ],
    ids=str,
)
def test_a_hostile_configuration_ends_in_one_message(
    made: Path, tmp_path: Path, change: dict[str, Any]
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(made / "model", folder)
    config = json.loads((folder / "config.json").read_text())
    config = {k: v for k, v in {**config, **change}.items() if v != GONE}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(RunError) as told:
        Deployed.load(folder)
    assert told.value.remedy


@pytest.mark.parametrize("content", ["{}", "[]", '{"image_mean": [1], "image_std": [1]}', "no"])
def test_a_damaged_preprocessor_ends_in_one_message(
    made: Path, tmp_path: Path, content: str
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(made / "model", folder)
    (folder / "preprocessor_config.json").write_text(content)
    with pytest.raises(RunError) as told:
        Deployed.load(folder)
    assert told.value.remedy == "export it again"


@pytest.mark.parametrize("damage", ["head_y.bias", "prompts", "head_a.weight"])
def test_an_artifact_without_a_weight_is_refused(made: Path, tmp_path: Path, damage: str) -> None:
    load_artifact(made / "debias")
    folder = copy_of(made / "debias", tmp_path / "debias", without(damage))
    with pytest.raises(RunError, match="cannot be read"):
        load_artifact(folder)


def test_concepts_of_other_shapes_are_refused(tmp_path: Path) -> None:
    scalars = np.zeros((4, 2), np.float32)
    save_concepts(Concepts(scalars, np.zeros((4, 2, 3), np.float32)), np.arange(4), tmp_path)
    assert load_concepts(tmp_path)[0].tokens.shape == (4, 2, 3)
    save_concepts(Concepts(scalars, np.zeros((4, 3, 3), np.float32)), np.arange(4), tmp_path)
    with pytest.raises(RunError, match=CONCEPTS):
        load_concepts(tmp_path)
