"""Masks from a folder, in the frame that the backbone sees."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from d2cp.data.open_table import load_table
from d2cp.errors import DataError
from d2cp.reproduce.masks import masked_rows, masks_of
from image_files import csv_set, encode


@pytest.fixture
def context(tmp_path):
    for name, data in csv_set(6).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    debias = SimpleNamespace(resize=8, image_size=4)
    config = SimpleNamespace(debias=debias)
    return SimpleNamespace(table=load_table(tmp_path), config=config)


def test_a_mask_is_resized_and_cut_like_its_image(context, tmp_path):
    folder = tmp_path / "masks"
    (folder / "img").mkdir(parents=True)
    pixels = np.zeros((16, 20), np.uint8)  # of an image 20 wide and 16 high
    pixels[:, 10:] = 255
    (folder / "img" / "02.png").write_bytes(encode(Image.fromarray(pixels)))
    rows = np.arange(6)
    found = masked_rows(context, folder, rows)
    assert [context.table.ids[row] for row in found] == ["img/02.png"]
    mask = masks_of(context, folder, found)
    assert mask.shape == (1, 4, 4)
    assert mask[0].float().mean(0).tolist() == [0, 0, 1, 1]


def test_without_masks_the_remedy_is_named(context, tmp_path):
    with pytest.raises(DataError, match="--masks FOLDER"):
        masked_rows(context, None, np.arange(6))
    with pytest.raises(DataError, match=r"img/00\.png"):
        masked_rows(context, tmp_path / "nowhere", np.arange(6))
    folder = tmp_path / "masks"
    (folder / "img").mkdir(parents=True)
    (folder / "img" / "01.png").write_bytes(b"no picture")
    with pytest.raises(DataError, match="cannot be read"):
        masks_of(context, folder, masked_rows(context, folder, np.arange(6)))
