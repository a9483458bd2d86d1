"""Backbones from anywhere: refused with one message, nothing of theirs is run."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from d2cp.backbone import load_backbone
from d2cp.backbone.identity import backbone_key
from d2cp.errors import BackboneError
from debias_tiny import library_model

WEIGHTS = "model.safetensors"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("backbone") / "vit"
    library_model("vit").save_pretrained(folder)
    return folder


def config(**changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    return change


def preprocessor(**values: Any) -> Callable[[Path], Any]:
    return lambda folder: (folder / "preprocessor_config.json").write_text(json.dumps(values))


def giant_header(folder: Path) -> None:
    (folder / WEIGHTS).write_bytes((2**50).to_bytes(8, "little") + b"{}")


def nan_weight(folder: Path) -> None:
    tensors = load_file(folder / WEIGHTS)
    next(iter(tensors.values())).view(-1)[0] = float("nan")
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})


def cut_weight(folder: Path) -> None:
    tensors = load_file(folder / WEIGHTS)
    name = "embeddings.position_embeddings"
    tensors[name] = tensors[name][..., :-1].contiguous()
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})


def linked(name: str, to: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(to)

    return change


def pickle_inside(folder: Path) -> None:
    torch.save({"w": torch.zeros(2)}, folder / WEIGHTS)


def index(value: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / WEIGHTS).unlink()
        (folder / f"{WEIGHTS}.index.json").write_text(json.dumps({"weight_map": value}))

    return change


HOSTILE: dict[str, Callable[[Path], Any]] = {
    "hidden_size text": config(hidden_size="many"),
    "hidden_size huge": config(hidden_size=10**9),
    "hidden_size list": config(hidden_size=[1]),
    "layers huge": config(num_hidden_layers=10**9),
    "layers none": config(num_hidden_layers=0),
    "more weights than bytes": config(hidden_size=4096, intermediate_size=16384),
    "heads": config(num_attention_heads=7),
    "heads none": config(num_attention_heads=0),
    "patch none": config(patch_size=0),
    "patch pair": config(patch_size=[7, 7]),
    "image negative": config(image_size=-28),
    "image below a patch": config(image_size=1),
    "activation": config(hidden_act={"no": 1}),
    "epsilon": config(layer_norm_eps="small"),
    "model_type": config(model_type=["vit"]),
    "channels": config(num_channels=10**6),
    "deep config": lambda folder: (folder / "config.json").write_text("[" * 100_000),
    "mean text": preprocessor(image_mean=["a", "b", "c"], image_std=[1, 1, 1]),
    "deviation zero": preprocessor(image_mean=[0, 0, 0], image_std=[0, 1, 1]),
    "deviation none": preprocessor(image_mean=[0, 0, 0], image_std=None),
    "mean not finite": preprocessor(image_mean=[float("nan"), 0, 0], image_std=[1, 1, 1]),
    "header": giant_header,
    "nan": nan_weight,
    "pickle": pickle_inside,
    "shape": cut_weight,
    "config a device": linked("config.json", "/dev/zero"),
    "config a circle": linked("config.json", "config.json"),
    "preprocessor a device": linked("preprocessor_config.json", "/dev/zero"),
    "preprocessor nowhere": linked("preprocessor_config.json", "nowhere"),
    "weights a device": linked(WEIGHTS, "/dev/zero"),
    "index of lists": index({"w": ["a.safetensors"]}),
    "index of a number": index(7),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_folder_ends_in_one_message(made: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "vit"
    shutil.copytree(made, folder)
    HOSTILE[name](folder)
    with pytest.raises(BackboneError) as error:
        load_backbone(folder)
    assert error.value.remedy


def test_a_weight_of_another_shape_is_named(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "vit"
    shutil.copytree(made, folder)
    cut_weight(folder)
    with pytest.raises(BackboneError, match="position_embeddings"):
        load_backbone(folder)


def test_code_beside_the_weights_is_not_run(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "vit"
    shutil.copytree(made, folder)
    ran = tmp_path / "ran"
    (folder / "modeling_x.py").write_text(f"open({str(ran)!r}, 'w')\nclass X: ...\n")
    names = {key: "modeling_x.X" for key in ("AutoConfig", "AutoModel", "AutoImageProcessor")}
    config(auto_map=names, trust_remote_code=True)(folder)
    load_backbone(folder)
    assert not ran.exists()


def test_a_link_to_whole_weights_is_the_weights(made: Path, tmp_path: Path) -> None:
    """The hub's cache is made of such links. Weights are known by bytes, not by place."""
    folder = tmp_path / "vit"
    shutil.copytree(made, folder)
    linked(WEIGHTS, str(made / WEIGHTS))(folder)
    whole, through = load_backbone(made), load_backbone(folder)
    for a, b in zip(whole.parameters(), through.parameters(), strict=True):
        assert torch.equal(a, b)
    assert backbone_key(str(folder)) == backbone_key(str(made))


@pytest.mark.parametrize("name", [WEIGHTS, "config.json", "preprocessor_config.json"])
def test_a_link_to_another_file_tells_nothing_of_it(made: Path, tmp_path: Path, name: str) -> None:
    folder, secret = tmp_path / "vit", tmp_path / "secret.txt"
    secret.write_text("password: hunter2\n" * 50)
    shutil.copytree(made, folder)
    linked(name, str(secret))(folder)
    with pytest.raises(BackboneError) as error:
        load_backbone(folder)
    assert "hunter2" not in str(error.value) and "password" not in str(error.value)
