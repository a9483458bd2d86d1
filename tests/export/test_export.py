"""The shipped model: folded = trained, saved = loaded, ONNX = torch, and predict's manners."""

import json
import logging
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import AutoImageProcessor, AutoModelForImageClassification
from typer import Typer
from typer.testing import CliRunner

from d2cp.backbone import load_backbone
from d2cp.cli.export import export
from d2cp.cli.predict import predict
from d2cp.core.run_directory import RunDirectory
from d2cp.debias.logits import predict_logits
from d2cp.debias.train import train_d2cp, train_on_features
from d2cp.debias.trained_files import Artifact, save_artifact
from d2cp.errors import ConfigError, D2CPError, RunError
from d2cp.export.onnx_file import export_onnx, require_onnx
from d2cp.export.serving import Deployed
from d2cp.export.ship import ship
from d2cp.pipeline.frozen_features import frozen_features
from debias_tiny import CONFIG, cmnist, labels_of, library_model

TABLE, STORE = cmnist()
NAMES = ("0-4", '"5-9" <b>')


@pytest.fixture(scope="module", params=["vit", "dinov2", "clip", "vit features", "vit fewer"])
def artifact(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    family, _, tier = request.param.partition(" ")
    share = 0.5 if tier == "fewer" else 1.0
    tier = tier if tier == "features" else "prompts"
    return make_artifact(family, tmp_path_factory.mktemp(family), tier, share)


@pytest.fixture(scope="module")
def vit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_artifact("vit", tmp_path_factory.mktemp("one"))


@pytest.fixture(scope="module")
def fewer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that drops half of the patches."""
    return make_artifact("vit", tmp_path_factory.mktemp("fewer"), keep_patches=0.5)


@pytest.fixture(scope="module")
def adapted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_artifact("dinov2", tmp_path_factory.mktemp("adapted"), "features")


def make_artifact(
    family: str, folder: Path, tier: str = "prompts", keep_patches: float = 1.0
) -> Path:
    """A run directory with a trained debias stage, on a backbone in its own folder."""
    library_model(family).save_pretrained(folder / "backbone")
    config = replace(CONFIG, head_init=0.5, max_steps=3, keep_patches=keep_patches)
    backbone, labels = load_backbone(folder / "backbone", keep_patches), labels_of(TABLE)
    if tier == "features":
        features = frozen_features(backbone, STORE, np.arange(len(TABLE)), 28, quiet=True)
        trained = train_on_features(features, labels, config, seed=0, backbone_parameters=1)
    else:
        trained = train_d2cp(backbone, STORE, labels, config, seed=0, quiet=True)
    run = RunDirectory(folder / "run")
    run.path.mkdir()
    run.start({"note": "test"})
    with run.writing("debias", "inputs") as stage:
        save_artifact(stage, Artifact(trained, str(folder / "backbone"), NAMES, ("red", "green")))
    return folder


def trained_logits(folder: Path, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    from d2cp.debias.trained_files import load_artifact

    artifact = load_artifact(folder / "run" / "debias")
    trained, backbone = artifact.trained, artifact.load_backbone()
    shortcut = trained.shortcut()
    assert shortcut is not None
    return (
        predict_logits(trained.classifier(), backbone, STORE, rows, image_size=28),
        predict_logits(shortcut, backbone, STORE, rows, image_size=28),
    )


def test_shipped_model_gives_the_trained_logits_without_the_backbone(
    artifact: Path, tmp_path: Path
) -> None:
    rows = TABLE.rows("test")[:20]
    logits, shortcut = trained_logits(artifact, rows)
    ship(artifact / "run" / "debias", tmp_path / "model", with_shortcut=True)
    (artifact / "backbone").rename(artifact / "moved")
    try:
        deployed = Deployed.load(tmp_path / "model")
        with torch.no_grad():
            out = deployed.model(deployed.pixels(list(STORE[rows])))
    finally:
        (artifact / "moved").rename(artifact / "backbone")
    assert np.abs(logits).max() > 0.5
    assert np.allclose(out.logits.numpy(), logits, atol=1e-5)
    assert np.allclose(out.shortcut_logits.numpy(), shortcut, atol=1e-5)


def test_hugging_face_can_load_the_folder(vit: Path, tmp_path: Path) -> None:
    ship(vit / "run" / "debias", tmp_path / "model")
    names = sorted(p.name for p in (tmp_path / "model").iterdir())
    assert names == ["README.md", "config.json", "model.safetensors", "preprocessor_config.json"]
    model = AutoModelForImageClassification.from_pretrained(tmp_path / "model").eval()
    assert model.config.id2label == dict(enumerate(NAMES))
    assert model.prefix_keys.shape[0] == 1 and not hasattr(model, "shortcut_head")
    rows = TABLE.rows("test")[:3]
    processor = AutoImageProcessor.from_pretrained(tmp_path / "model", use_fast=False)
    inputs = processor([Image.fromarray(image) for image in STORE[rows]], return_tensors="pt")
    with torch.no_grad():
        out = model(**inputs, labels=torch.tensor([0, 1, 0]))
    assert np.allclose(out.logits.numpy(), trained_logits(vit, rows)[0], atol=1e-4)
    assert out.loss.item() > 0 and out.shortcut_logits is None


@pytest.mark.slow
@pytest.mark.parametrize("tier", ["vit", "adapted", "fewer"])
def test_onnx_equals_torch_at_any_batch_size(
    tier: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    import onnxruntime

    folder: Path = request.getfixturevalue(tier)
    ship(folder / "run" / "debias", tmp_path / "model", with_shortcut=True)
    deployed = Deployed.load(tmp_path / "model")
    path = tmp_path / "model.onnx"
    assert export_onnx(deployed.model, path) <= 1e-4
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    rows = TABLE.rows("test")[:7]
    logits, shortcut = trained_logits(folder, rows)
    pixels = deployed.pixels(list(STORE[rows])).numpy()
    found = session.run(["logits", "shortcut_logits"], {"pixel_values": pixels})
    assert np.allclose(found[0], logits, atol=1e-4)
    assert np.allclose(found[1], shortcut, atol=1e-4)


def test_onnx_export_says_nothing_of_its_own(
    vit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ship(vit / "run" / "debias", tmp_path / "out")
    model = Deployed.load(tmp_path / "out").model
    real = torch.onnx.export

    def noisy(*arguments: object, **options: object) -> object:
        logging.getLogger("torch.onnx").warning("stray")
        warnings.warn("stray", stacklevel=1)
        return real(*arguments, **options)

    monkeypatch.setattr(torch.onnx, "export", noisy)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        export_onnx(model, tmp_path / "model.onnx")
    assert "stray" not in caplog.text
    logging.getLogger("torch.onnx").warning("heard again")
    assert "heard again" in caplog.text


def test_onnx_absent_says_how_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'd2cp\[onnx\]'"):
        require_onnx()


def test_shipping_replaces_an_export_and_nothing_else(vit: Path, tmp_path: Path) -> None:
    target = tmp_path / "model"
    ship(vit / "run" / "debias", target)
    ship(vit / "run" / "debias", target, with_shortcut=True)
    assert json.loads((target / "config.json").read_text())["shortcut_labels"] == ["red", "green"]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("mine")
    with pytest.raises(RunError, match="not an export"):
        ship(vit / "run" / "debias", tmp_path / "other")
    assert (tmp_path / "other" / "thesis.txt").read_text() == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model", "other"]


def test_commands(vit: Path, tmp_path: Path) -> None:
    app, runner = Typer(), CliRunner()
    app.command()(export)
    app.command()(predict)
    out = str(tmp_path / "model")
    made = runner.invoke(app, ["export", str(vit / "run"), "--to", out, "--with-shortcut"])
    assert made.exit_code == 0, made.output
    rows = TABLE.rows("test")[:3]
    (tmp_path / "images").mkdir()
    for index, image in enumerate(STORE[rows]):
        Image.fromarray(image).save(tmp_path / "images" / f"{index}.png")
    found = runner.invoke(app, ["predict", out, str(tmp_path / "images"), "--batch", "2"])
    lines = [json.loads(line) for line in found.stdout.splitlines()]
    logits, shortcut = trained_logits(vit, rows)
    assert found.exit_code == 0
    assert [line["label"] for line in lines] == [NAMES[i] for i in logits.argmax(1)]
    assert [line["shortcut"] for line in lines] == [("red", "green")[i] for i in shortcut.argmax(1)]
    for line in lines:
        assert sum(line["probabilities"].values()) == pytest.approx(1, abs=1e-5)
    (tmp_path / "images" / "1.png").write_bytes(b"<html>")
    names = [str(tmp_path / "images" / name) for name in ("0.png", "1.png", "absent.png", "2.png")]
    found = runner.invoke(app, ["predict", out, *names])
    lines = [json.loads(line) for line in found.stdout.splitlines()]
    assert found.exit_code == 1
    assert ["error" in line for line in lines] == [False, True, True, False]
    assert [line["file"] for line in lines] == names


@pytest.mark.parametrize("damage", ["absent", "other type", "truncated"])
def test_what_is_not_an_export_is_refused(vit: Path, tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "model"
    if damage == "other type":
        folder = vit / "backbone"
    elif damage == "truncated":
        ship(vit / "run" / "debias", folder)
        weights = folder / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-64])
    with pytest.raises(D2CPError):
        Deployed.load(folder)


def test_export_onto_a_link_is_refused(vit: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name in ("link", "dangling"):
        with pytest.raises(RunError, match="is a link"):
            ship(vit / "run" / "debias", tmp_path / name)
    assert not list((tmp_path / "real").iterdir())


def test_the_configuration_of_a_backbone_is_not_asked_of_the_hub_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from d2cp.export.folded import backbone_configuration

    def retried(seconds: float) -> None:
        pytest.fail(f"waited {seconds} s for the hub")

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("time.sleep", retried)
    with pytest.raises(OSError):
        backbone_configuration("no-such-owner/no-such-vit")
