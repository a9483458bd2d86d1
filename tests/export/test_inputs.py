"""A picture gives the same answer however it is handed over, and what is none is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from d2cp.config.request import Request
from d2cp.errors import ConfigError, DataError
from d2cp.estimator import D2CP
from d2cp.export.inputs import listed, picture
from image_files import encode
from image_files import picture as drawn


def files(folder: Path) -> dict[str, Path]:
    """Files whose bytes do not say it all: rotation, transparency, depth."""
    exif = Image.Exif()
    exif[0x0112] = 6
    made = {"turned": encode(drawn(1, 30, 20), "JPEG", exif=exif.tobytes(), quality=95)}
    veiled = drawn(2).convert("RGBA")
    veiled.putalpha(90)
    made["veiled"] = encode(veiled)
    deep = (np.arange(300, dtype=np.uint16).reshape(15, 20) * 218).astype(np.uint16)
    made["deep"] = encode(Image.fromarray(deep))
    palette = drawn(3).quantize(8)
    made["palette"] = encode(palette, transparency=2)
    for name, data in made.items():
        (folder / name).write_bytes(data)
    return {name: folder / name for name in made}


@pytest.mark.parametrize("name", ["turned", "veiled", "deep", "palette"])
def test_a_file_its_bytes_and_the_open_image_are_one_picture(tmp_path: Path, name: str) -> None:
    path = files(tmp_path)[name]
    wanted = np.asarray(picture(path))
    with Image.open(path) as image:
        assert np.array_equal(np.asarray(picture(image)), wanted)
    assert np.array_equal(np.asarray(picture(str(path))), wanted)
    assert np.array_equal(np.asarray(picture(path.read_bytes())), wanted)


def test_arrays_of_every_depth_are_one_picture(tmp_path: Path) -> None:
    pixels = np.asarray(drawn(5))
    for same in (
        pixels,
        pixels.astype(np.uint16) * 257,
        pixels / 255,
        pixels.astype(np.float32),
        torch.from_numpy(pixels.copy()),
        torch.from_numpy(pixels.copy()).permute(2, 0, 1),
        torch.from_numpy(pixels / 255).permute(2, 0, 1),
    ):
        assert np.array_equal(np.asarray(picture(same)), pixels)
    path = files(tmp_path)
    with Image.open(path["deep"]) as image:
        assert np.array_equal(np.asarray(picture(np.asarray(image))), np.asarray(picture(image)))
    with Image.open(path["veiled"]) as image:
        assert np.array_equal(np.asarray(picture(np.asarray(image))), np.asarray(picture(image)))


def test_one_is_one_and_many_are_many(tmp_path: Path) -> None:
    pixels = np.asarray(drawn(5))
    for one in ("x.png", Path("x.png"), b"...", drawn(1), pixels, pixels[..., 0]):
        assert len(listed(one)) == 1
    stack = np.stack([pixels, pixels, pixels])
    channels_first = torch.from_numpy(stack).permute(0, 3, 1, 2)
    for many in (stack, list(stack), iter(stack), channels_first, np.array(["a", "b", "c"])):
        assert len(listed(many)) == 3
    assert np.array_equal(np.asarray(picture(listed(channels_first)[0])), pixels)


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        3,
        b"",
        b"<html>",
        "absent.png",
        np.zeros((4, 4, 7)),
        np.zeros((0, 4, 3), np.uint8),
        np.full((4, 4), -1.0),
        np.full((4, 4, 3), np.nan),
        np.zeros((4, 4), dtype=complex),
        np.zeros((4, 4), dtype=bool),
        np.zeros(5, np.uint8),
        {"image": 1},
        object(),
    ],
    ids=lambda value: f"{type(value).__name__} {getattr(value, 'shape', '')}",
)
def test_what_is_no_picture_is_a_clear_error(wrong: object) -> None:
    with pytest.raises(DataError) as refused:
        for image in listed(wrong):
            picture(image, "image 0")
    assert "image" in str(refused.value) and "expected" in str(refused.value)


def test_a_whole_configuration_and_its_parts_are_refused_together() -> None:
    asked = D2CP(seed=7, backbone="embedded").config
    assert isinstance(asked, Request)  # the data have yet to choose the preset
    config = asked.config("demo")
    assert config.seed == 7
    assert D2CP(config=config).config is config
    for part in ({"seed": 0}, {"backbone": "embedded"}, {"preset": "demo"}, {"settings": {}}):
        with pytest.raises(ConfigError, match=next(iter(part))):
            D2CP(config=config, **part)
