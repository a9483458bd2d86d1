"""Faults of a backbone folder end in an error that says what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import CLIPConfig, CLIPModel, ResNetConfig, ViTForImageClassification, ViTModel

from d2cp.backbone import load_backbone
from d2cp.backbone.load import quiet
from d2cp.errors import BackboneError
from tiny_families import CONFIGS, TINY


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    ViTModel(CONFIGS["vit"], add_pooling_layer=False).save_pretrained(tmp_path)
    return tmp_path


def test_missing_folder(tmp_path: Path) -> None:
    for name in (tmp_path / "nowhere", str(tmp_path / "nowhere")):
        with pytest.raises(BackboneError, match=r"no backbone folder[\s\S]*embedded"):
            load_backbone(name)


def test_folder_without_config(tmp_path: Path) -> None:
    with pytest.raises(BackboneError, match=r"has no config\.json"):
        load_backbone(tmp_path)


def test_folder_without_weights(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(BackboneError, match=r"no weights[\s\S]*pickled"):
        load_backbone(folder)


@pytest.mark.parametrize("keep", [0, 5, 500, -40])
def test_truncated_weights(folder: Path, keep: int) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:keep])
    with pytest.raises(BackboneError, match=r"cannot be read[\s\S]*again"):
        load_backbone(folder)


def test_unreadable_config(folder: Path) -> None:
    (folder / "config.json").write_text("{")
    with pytest.raises(BackboneError, match="not readable JSON"):
        load_backbone(folder)


def test_absent_weight(folder: Path) -> None:
    state = load_file(folder / "model.safetensors")
    del state[next(name for name, value in state.items() if value.shape == (48, 32))]
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(BackboneError, match=r"1 weights .*fc1\.weight"):
        load_backbone(folder)


def test_weights_of_another_width(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"intermediate_size": 40}))
    with pytest.raises(BackboneError):
        load_backbone(folder)


def test_unsupported_family(tmp_path: Path) -> None:
    ResNetConfig().save_pretrained(tmp_path)
    with pytest.raises(BackboneError, match=r"'resnet'[\s\S]*vit, deit, dinov2"):
        load_backbone(tmp_path)


def test_hub_name_without_network_is_told_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Sockets are blocked by the suite; the hub's library would sleep between its retries."""

    def sleep(seconds: float) -> None:
        pytest.fail(f"waited {seconds} s for a network that is not there")

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("time.sleep", sleep)
    with pytest.raises(BackboneError, match=r"no-such-vit[\s\S]*no network[\s\S]*that folder"):
        load_backbone("no-such-owner/no-such-vit")


class Canary:
    """Unpickled, it leaves a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("shard", ["pytorch_model.bin", "../w.safetensors", "/w.safetensors", 7])
def test_an_index_that_leads_to_a_pickle_is_refused(folder: Path, shard: object) -> None:
    names = list(load_file(folder / "model.safetensors"))
    (folder / "model.safetensors").unlink()
    torch.save({name: Canary(folder / "ran") for name in names}, folder / "pytorch_model.bin")
    index = {"metadata": {"total_size": 1}, "weight_map": dict.fromkeys(names, shard)}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(BackboneError, match="index of weights"):
        load_backbone(folder)
    assert not (folder / "ran").exists()


@pytest.mark.parametrize("key", ["attn_implementation", "_attn_implementation"])
def test_attention_code_that_a_configuration_names_is_not_fetched(folder: Path, key: str) -> None:
    expected = load_backbone(folder).patch.weight
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {key: "someone/kernel"}))
    assert torch.equal(load_backbone(folder).patch.weight, expected)


def test_a_missing_shard_is_told_as_a_folder_s_fault(folder: Path) -> None:
    names = list(load_file(folder / "model.safetensors"))
    (folder / "model.safetensors").unlink()
    index = {"metadata": {"total_size": 1}, "weight_map": dict.fromkeys(names, "a.safetensors")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(BackboneError, match="cannot be read"):
        load_backbone(folder)


def test_float16_checkpoint_is_float32_in_memory(folder: Path) -> None:
    expected = load_backbone(folder).patch.weight.half().float()
    ViTModel.from_pretrained(folder, add_pooling_layer=False).half().save_pretrained(folder)
    loaded = load_backbone(folder)
    assert {parameter.dtype for parameter in loaded.parameters()} == {torch.float32}
    assert torch.equal(loaded.patch.weight, expected)


def test_classifier_checkpoint_gives_its_backbone(tmp_path: Path) -> None:
    model = ViTForImageClassification(CONFIGS["vit"]).eval()
    model.save_pretrained(tmp_path)
    pixels = torch.randn(2, 3, 28, 28, generator=torch.Generator().manual_seed(0))
    logits = model.classifier(load_backbone(tmp_path).features(pixels))
    torch.testing.assert_close(logits, model(pixels).logits, atol=1e-5, rtol=1e-5)


def test_whole_clip_gives_its_vision_tower(tmp_path: Path) -> None:
    text: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    vision = TINY | {"intermediate_size": 48}
    config = CLIPConfig(text_config=text | {"vocab_size": 99}, vision_config=vision)
    model = CLIPModel(config).eval()
    model.save_pretrained(tmp_path)
    pixels = torch.randn(2, 3, 28, 28, generator=torch.Generator().manual_seed(0))
    expected = model.vision_model(pixels).pooler_output
    backbone = load_backbone(tmp_path)
    assert backbone.family == "clip_vision_model"
    torch.testing.assert_close(backbone.features(pixels), expected, atol=1e-5, rtol=1e-5)


def test_normalisation_of_the_folder_wins(folder: Path) -> None:
    preprocessor = {"image_mean": [0.1, 0.2, 0.3], "image_std": [0.4, 0.5, 0.6]}
    (folder / "preprocessor_config.json").write_text(json.dumps(preprocessor))
    backbone = load_backbone(folder)
    assert (backbone.mean, backbone.std) == ((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))


def test_loading_is_silent(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    load_backbone(folder)
    assert capfd.readouterr() == ("", "")


def test_quiet_restores_what_it_found() -> None:
    from transformers.utils import logging

    before = (logging.get_verbosity(), logging.is_progress_bar_enabled())
    with quiet():
        assert not logging.is_progress_bar_enabled()
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before
