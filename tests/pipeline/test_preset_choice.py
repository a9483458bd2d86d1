"""A preset for the data at hand, said in one line; what cannot work is refused."""

from pathlib import Path

import pytest
from PIL import Image

from d2cp.config.request import Request
from d2cp.core.files import write_json
from d2cp.data import load_table
from d2cp.errors import ConfigError
from d2cp.pipeline import preset_choice
from d2cp.pipeline.preset_choice import choose_preset, settle, usual_side


@pytest.fixture(autouse=True)
def without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preset_choice, "has_accelerator", lambda: False)


def folder(path: Path, side: int) -> Path:
    """Two classes of twelve images, the shorter side `side`."""
    for name in ("cat", "dog"):
        (path / name).mkdir(parents=True)
        for index in range(12):
            image = Image.new("RGB", (side + 5, side), (index, 10, 20))
            image.save(path / name / f"{index}.png")
    return path


def test_size_and_machine_decide() -> None:
    assert choose_preset(28, True).preset == choose_preset(48, False).preset == "demo"
    assert choose_preset(49, False).preset == "photo-cpu"
    assert choose_preset(224, True).preset == "photo64"
    assert choose_preset(None, False).preset == "photo-cpu"
    assert str(choose_preset(144, False)) == "preset photo-cpu: photographs of 144 px, no GPU"


def test_the_usual_side_is_read_off_files_and_arrays(tmp_path: Path) -> None:
    photos = folder(tmp_path, 90)
    (photos / "cat" / "0.png").write_bytes(b"<html>")  # one that cannot be read says nothing
    assert usual_side(load_table(photos)) == 90
    assert usual_side(load_table("cmnist")) == 28


def test_a_request_without_a_preset_takes_the_one_that_suits(tmp_path: Path) -> None:
    config, said = settle(Request(overrides={"seed": 3}), load_table(folder(tmp_path, 90)))
    assert (config.preset, config.seed) == ("photo-cpu", 3)
    assert said == "preset photo-cpu: photographs of 90 px, no GPU"
    config, said = settle(Request(), load_table("cmnist"))
    assert config.preset == "demo" and said == "preset demo: images of 28 px"
    named, said = settle(Request(preset="cmnist"), load_table("cmnist"))
    assert named.preset == "cmnist" and said == ""


def test_a_started_run_goes_on_with_its_preset(tmp_path: Path) -> None:
    write_json(tmp_path / "run.json", {"config": {"preset": "waterbirds"}})
    config, said = settle(Request(), load_table("cmnist"), tmp_path)
    assert config.preset == "waterbirds" and "as this run was started" in said


def test_the_digits_backbone_on_photographs_must_be_asked_for(tmp_path: Path) -> None:
    photos = load_table(folder(tmp_path / "photos", 90))
    with pytest.raises(ConfigError, match="digits' backbone") as caught:
        settle(Request(preset="demo"), photos)
    assert "--preset photo-cpu" in str(caught.value) and "--backbone embedded" in str(caught.value)
    file = tmp_path / "own.toml"
    file.write_text('backbone = "embedded"\n')
    for asked in (
        Request(preset="demo", overrides={"backbone": "embedded"}),
        Request(preset="demo", assignments=["backbone=embedded"]),
        Request(preset="demo", file=file),
    ):
        assert settle(asked, photos)[0].backbone == "embedded"
    assert settle(Request(preset="demo"), load_table("cmnist"))[0].backbone == "embedded"
