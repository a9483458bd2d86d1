"""Pictures of a scan have the shape of their files."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from d2cp.data.open_table import load_table
from d2cp.disentangle.canvas import Grid
from d2cp.scan.shapes import aspect, unstretched


def photo(width: int, height: int, orientation: int | None = None) -> bytes:
    buffer = io.BytesIO()
    image = Image.new("RGB", (width, height), (200, 10, 10))
    exif = Image.Exif()
    if orientation is not None:
        exif[274] = orientation
    image.save(buffer, "JPEG", exif=exif)
    return buffer.getvalue()


def test_width_to_height_is_the_upright_file_s(tmp_path: Path) -> None:
    files = {
        "a/1.jpg": (photo(60, 40), 1.5),
        "a/2.jpg": (photo(60, 40, 6), 40 / 60),
        "b/1.jpg": (photo(60, 40, 3), 1.5),
        "b/2.jpg": (photo(90, 10), 4.0),
    }
    for name, (data, _) in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    table = load_table(tmp_path)
    for row, name in enumerate(table.ids):
        assert aspect(table, row) == pytest.approx(files[str(name)][1])
    (tmp_path / "a/1.jpg").unlink()
    assert aspect(table, list(table.ids).index("a/1.jpg")) == 1.0
    assert aspect(load_table("digits-unbiased"), 0) == 1.0


def test_a_square_gets_its_shape_back_and_lies_in_the_middle_of_its_cell() -> None:
    square = np.full((60, 60, 3), 40, np.uint8)
    assert unstretched(square, 1.0) is square
    assert unstretched(square, 1.5).shape == (40, 60, 3)
    assert unstretched(square, 0.5).shape == (60, 30, 3)
    grid = Grid("", "", [""], [("", [unstretched(square, 0.5)])], cell=60)
    dark = np.asarray(grid.draw().convert("L")) < 60
    rows, columns = np.flatnonzero(dark.any(1)), np.flatnonzero(dark.any(0))
    assert np.ptp(rows) == 59 and np.ptp(columns) == 29
    whole = Grid("", "", [""], [("", [square])], cell=60).draw().convert("L")
    cell = np.flatnonzero((np.asarray(whole) < 60).any(0))
    assert columns.min() - cell.min() == cell.max() - columns.max() == 15
