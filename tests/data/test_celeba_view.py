"""CelebA's published transform: the centre 178 x 178 at native resolution, enlarged to 224."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import torch
from PIL import Image

from d2cp.config import load_config
from d2cp.data import load_images, load_table
from d2cp.data.pixels import centre_view
from d2cp.export.hugging_face import D2CPForImageClassification
from d2cp.export.serving import Deployed
from image_files import Tree, encode, picture

PORTRAIT = encode(picture(9, 178, 218), "PNG")


def published() -> torch.Tensor:
    """[3, 224, 224] in [0, 1], written out with Pillow alone."""
    with Image.open(io.BytesIO(PORTRAIT)) as image:
        assert image.size == (178, 218)
        square = image.convert("RGB").crop((0, 20, 178, 198))
    pixels = np.asarray(square.resize((224, 224), Image.Resampling.BILINEAR))
    return torch.from_numpy(pixels.copy()).permute(2, 0, 1) / 255


def test_scored_pixels_are_those_of_crop_178_resize_224(tree: Tree, cache: Path) -> None:
    lists = {
        "list_attr_celeba.csv": b"image_id,Blond_Hair,Male\n"
        + b"".join(b"%06d.png,%d,%d\n" % (i, 2 * (i % 2) - 1, 1) for i in range(6)),
        "list_eval_partition.csv": b"image_id,partition\n"
        + b"".join(b"%06d.png,%d\n" % (i, i // 2) for i in range(6)),
    }
    images = {f"img_align_celeba/{i:06d}.png": PORTRAIT for i in range(6)}
    settings = load_config("celeba").debias
    _, store = load_images(load_table(tree(lists | images)), settings.resize, cache)
    shown = centre_view(store[np.array([3])], settings.image_size)[0]
    torch.testing.assert_close(shown, published())


def test_served_pixels_are_the_same(tmp_path: Path) -> None:
    settings = load_config("celeba").debias
    config = SimpleNamespace(
        image_size=settings.image_size, resize=settings.resize, centre_crop=178
    )
    model = cast(D2CPForImageClassification, SimpleNamespace(config=config))
    deployed = Deployed(model, mean=(0.0,) * 3, std=(1.0,) * 3)
    path = tmp_path / "portrait.png"
    path.write_bytes(PORTRAIT)
    torch.testing.assert_close(deployed.pixels([deployed.read(path)])[0], published())
