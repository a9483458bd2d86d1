"""Tiles of several cells as one figure; which images are shown."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from PIL import Image

from d2cp.data.open_table import load_table
from d2cp.reproduce.looked_at import SHOWN, group_of, shown_rows
from d2cp.reproduce.strips import IMAGES, MAPS, figures, save_strip, tiles_of


def tiles(level: int) -> list[np.ndarray]:
    return [np.full((16, 16, 3), level + 20 * k, np.uint8) for k in range(3)]


def test_tiles_come_back_as_they_were(tmp_path):
    save_strip(tiles(10), tmp_path / "strip.png")
    assert [t.tolist() for t in tiles_of(tmp_path / "strip.png")] == [t.tolist() for t in tiles(10)]


def test_a_figure_has_the_images_once_and_a_row_for_every_model(tmp_path):
    found = []
    for seed in (0, 1):
        for level, key in ((60, "erm"), (120, "d2cp")):
            folder = tmp_path / f"{key}{seed}"
            folder.mkdir()
            save_strip(tiles(0), folder / IMAGES)
            save_strip(tiles(level), folder / MAPS)
            row = SimpleNamespace(name=key)
            cell = SimpleNamespace(
                data=SimpleNamespace(name="x"), seed=seed, row=row, folder=folder
            )
            found.append((cell, {"columns": ["one", "two", "three"]}))
    found.append((SimpleNamespace(), {"lines": []}))  # a cell of another kind
    made = figures(found, tmp_path)
    assert [path.name for _, path in made] == ["x-0-maps.png", "x-1-maps.png"]
    with Image.open(made[0][1]) as figure:
        pixels = np.asarray(figure.convert("RGB"))
    for row in (0, 60, 120):
        for tile in tiles(row):
            assert (pixels == tile[0, 0]).all(-1).sum() >= 100 * 100


def test_images_are_shown_from_every_group_in_turn():
    table = load_table("cmnist")
    rows = table.rows("test")
    shown = [group_of(table, row) for row in shown_rows(table, rows)]
    assert len(shown) == SHOWN and shown == sorted(shown)
    assert {name: shown.count(name) for name in shown} == {
        "0-4, red": 2,
        "0-4, green": 2,
        "5-9, red": 2,
        "5-9, green": 2,
    }
